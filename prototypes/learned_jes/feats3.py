from feats import *
from amortes.nets.kernel.particles import normal_points
from amortes.nets.kernel.representers import _root
RP=48
@torch.no_grad()
def setup3(c,T=64,S=None):
    X=representer_points(c,CFG); at=c.moments(X); w=c.weights[0]; k=len(w)
    cov=c.covariance(at,at); root=_root(c,cov)
    z=normal_points(X.shape[1],k*T).reshape(k,T,-1)
    mx,am=(at.mean[...,None]+root@z.mT).max(2)
    sh=torch.zeros(k,X.shape[1],dtype=mx.dtype).scatter_add(1,am[0],torch.ones_like(mx[0]))/T
    mix=(w[:,None]*sh).sum(0); m,s=at.mean[0],at.variance[0].sqrt(); h=c.particles.hyper
    own=(sh+1e-9)/(sh+1e-9).sum(1,keepdim=True)
    return dict(c=c,w=w,X=X,places=X,V=at.V,wh=at.whitened,mr=m,sr=s,m=m,s=s,share=sh,mix=mix/mix.sum(),own=own,pi=own,mu=mx[0].mean(1),sd=mx[0].std(1).clamp_min(1e-6),
        noise=c.noise_variance[0],signal=h.output_variance[0],d=X.shape[-1],n=c.num_observed)
def q3(S,Xq):
    c=S["c"]; at=c.moments(Xq[None]); m,v=at.mean[0],at.variance[0]; s=v.sqrt(); w=S["w"]
    k=c.kernel(at.V,S["V"])[0]; cov=k-(at.whitened.mT@S["wh"])[0]
    sr=S["sr"][:,None]; rho=(cov/(s[...,None]*sr)).clamp(-0.9999,0.9999)
    kap=((k-c.prior.mean.scale**2)/S["signal"][:,None,None]).clamp(1e-12,1)
    mub=float((w*S["mu"]).sum()); sdb=float(((w*(S["sd"]**2+(S["mu"]-mub)**2)).sum()).sqrt())
    left=1-rho.square(); out=[]
    fr=torch.maximum(torch.tensor(mub,dtype=m.dtype),S["mr"])      # P x R
    out=[]
    for lev in (0.0,):
        mm=m[...,None]+rho*s[...,None]*((fr[:,None]-S["mr"][:,None])/sr).clamp(-6,6)
        z=((fr[:,None]-mm)/(s[...,None]*left.sqrt())).clamp(-8,8); lam,dl,width=cut_off(z)
        m2=(mm-s[...,None]*left.sqrt()*lam-m[...,None])/s[...,None]
    for pi in (S["mix"][None,None].expand_as(rho),S["own"][:,None].expand_as(rho)):
        p=lambda u:(pi*u).sum(-1)
        st=p(left*width).clamp(1e-4,1-1e-4); b=p(m2)
        out+=[logit(st),b,p(rho.square()),p(rho.abs()),p(rho.square().square()),p(kap),p(kap.square()),p(kap.sqrt()),p(kap.log().clamp_min(-25)),p(width),p(left.log())]
    out+=[(mub-m)/torch.sqrt(v+sdb**2),cut_off(((mub-m)/s).clamp(-8,8))[2],v/(v+S["noise"][:,None]),(v/S["signal"][:,None]).log(),(sdb**2/v).log(),rho.square().amax(-1),kap.amax(-1),((S["mu"][:,None]-mub)/s).clamp(-8,8)]
    f=torch.stack(out,-1); o=torch.ones_like(m); d,n=S["d"],S["n"]
    gl=torch.stack([o*math.log(d),o*math.log(n),o*(S["sd"].square()/S["signal"]).log()[:,None],o*0.5*(S["noise"]/S["signal"]).log()[:,None],o*-(S["mix"]*(S["mix"]+1e-9).log()).sum(),o*c.particles.hyper.roughness[0][:,None]],-1)
    return torch.cat([f,gl],-1),m,v
def slopes3(S):
    c=S["c"]; w=S["w"]; X=S["places"][:,:RS]; mix=S["mix"][:RS]; mix=mix/mix.sum()
    mub=(w*S["mu"]).sum(); f=torch.maximum(mub,(w[:,None]*S["mr"][:,:RS]).sum(0))[None]
    at=c.moments(X); own=S["own"][:,:RS]+1e-4; own=own/own.sum(1,keepdim=True)
    pts=Representers(moments=at,covariance=c.covariance(at,at),share=own[None],max_mean=S["mu"][None],max_unexplained=0.3*S["sd"].square()[None].clamp_min(1e-8))
    loc=local_maximum(c,pts,X); opt=GivenOptimum.of(loc,f); S["tm"]=TruncatedMoments.of(opt)
    S["pis"]=mix[None].expand(len(w),-1); S["pie"]=(mix.log()[None]+opt.log_evidence[0]).softmax(1)
