"""Set-up and query features of the learned gain; no draws."""
import torch, math
from amortes.nets.kernel.representers import representer_points, RepresenterConfig
from amortes.nets.kernel.optimum import temper
from amortes.nets.distributions.normal import cut_off
CFG=RepresenterConfig(count=48,num_global=96,num_centres=8,per_centre=16)
R=16
NODES=24
def logit(x): return (x/(1-x)).log()
@torch.no_grad()
def setup(c):
    """c: Conditioned of one dataset."""
    X=representer_points(c,CFG); at=c.moments(X)
    m,s=at.mean[0],at.variance[0].sqrt()                       # P x m
    # distribution of the maximum, points taken for independent, tempered for their dependence
    lo=(m-1.0*s).max(1,keepdim=True).values; hi=(m+3.5*s).max(1,keepdim=True).values
    z=lo+(hi-lo)*torch.linspace(0,1,NODES,dtype=m.dtype)        # P x L
    u=((z[:,None]-m[...,None])/s[...,None]).clamp(-30,30)                      # P x m x L
    lc=torch.special.log_ndtr(u); F=0.3*lc.sum(1)              # P x L log cdf of max
    cdf=F.exp(); cdf=cdf/cdf[:,-1:]
    pdf=torch.diff(cdf,dim=1); mid=0.5*(z[:,1:]+z[:,:-1])
    mu=(pdf*mid).sum(1); sd=((pdf*mid.square()).sum(1)-mu.square()+ (z[:,1]-z[:,0]).square()/12).clamp_min(1e-12).sqrt()
    dens=(-0.5*u.square()-s[...,None].clamp_min(1e-4).log()-lc)                # P x m x L: hazard-like density
    share=(dens+F[:,None]).softmax(1)                          # given the max is z: where
    pm=(F.diff(dim=1).exp()*0+pdf)                             # P x L-1
    share=(0.5*(share[...,1:]+share[...,:-1])*pm[:,None]).sum(-1)  # P x m
    w=c.weights[0]
    top=(w[:,None]*share).sum(0).topk(min(R,X.shape[1])).indices
    sh=share[:,top]; tot=sh.sum(1,keepdim=True); sh=sh/tot.clamp_min(1e-6)
    h=c.particles.hyper
    V=at.V[:,:,top]; wh=at.whitened[...,top]
    return dict(X=X,at=at,c=c,w=w,mu=mu,sd=sd,share=share,places=X[:,top],pi=sh,V=V,wh=wh,mr=m[:,top],sr=s[:,top],m=m,s=s,
        noise=c.noise_variance[0],signal=h.output_variance[0],d=X.shape[-1],n=c.num_observed)
@torch.no_grad()
def pair_features(S):
    c=S["c"]; h=c.particles.hyper; d,n=S["d"],S["n"]
    def sq(u):  # P x k -> P x P
        return (u[:,None]-u[None]).square().sum(-1)
    ll=h.lengthscale[0].log(); rel=torch.log1p(h.lengthscale[0].pow(-2))
    one=lambda u:u[:,None]
    rough=h.roughness[0].clamp(1e-4,1-1e-4)
    f=[sq(ll),sq(rel),sq(one(h.output_variance[0].log())),sq(one(h.noise_sd[0].log())),sq(one(logit(rough))),
       sq(h.warp[0][:,0]),sq(h.warp[0][:,1])]
    def bh(m,s):  # Bhattacharyya distance, P x ... 
        v=s.square(); t=v[:,None]+v[None]
        return 0.25*(m[:,None]-m[None]).square()/t+0.5*(t/(2*s[:,None]*s[None])).log()
    b=bh(S["m"],S["s"]); av=0.5*(S["share"][:,None]+S["share"][None])
    f+=[(av*b).sum(-1), bh(S["mu"],S["sd"]), -((S["share"][:,None]*S["share"][None]).sqrt().sum(-1)+1e-6).log()]
    sa=S["sd"]
    f+=[((S["mu"][:,None]-S["mu"][None])**2/(sa[:,None]**2+sa[None]**2)), sq(one(sa.log()))]
    f=torch.stack(f,-1).clamp_min(0.0)                   # P x P x F
    w=S["w"]; lw=w.clamp_min(1e-6).log()
    sym=torch.stack([lw[:,None]+lw[None],(lw[:,None]-lw[None]).abs()],-1)
    avg=lambda u:(w*u).sum()
    g=torch.tensor([math.log(d),temper(d),math.log(n),float(0.5*avg((S["noise"]/S["signal"]).log())),float(avg((sa**2/S["signal"]).log())),float((w**2).sum())],dtype=f.dtype)
    return torch.cat([f.sqrt(),torch.log1p(f),sym/5,g.expand(*f.shape[:2],-1)],-1), f
def query_features(S,Xq):
    """Xq q x d -> features P x q x F, mean, variance (P x q), start ratio."""
    c=S["c"]; at=c.moments(Xq[None]); m,v=at.mean[0],at.variance[0]; s=v.sqrt()
    k=c.kernel(at.V,S["V"])[0]; cov=k-(at.whitened.mT@S["wh"])[0]      # P x q x R
    sr=S["sr"][:,None]; rho=(cov/(s[...,None]*sr)).clamp(-0.9999,0.9999)
    sig=S["signal"][:,None,None]; tm=c.prior.mean.scale**2
    kap=((k-tm)/sig)
    pi=S["pi"][:,None]; mu,sd=S["mu"][:,None],S["sd"][:,None]
    left=1-rho.square()
    # truncated after f(x_r) = mu of the maximum
    mm=m[...,None]+rho*s[...,None]*((mu[...,None]-S["mr"][:,None])/sr)
    z=((mu[...,None]-mm)/(s[...,None]*left.sqrt())).clamp(-8,8)
    width=cut_off(z)[2]
    start=(pi*left*width).sum(-1)                                        # P x q
    a1=(pi*rho.square()).sum(-1); a2=(pi*rho.abs()).sum(-1); a3=(pi*kap).sum(-1); a4=(pi*kap.square().square()).sum(-1)
    a5=(pi*width).sum(-1)
    z0=(mu-m)/torch.sqrt(v+sd.square()); w0=cut_off(((mu-m)/s).clamp(-8,8))[2]
    ratio=(v/(v+S["noise"][:,None]))
    f=torch.stack([logit(start.clamp(1e-4,1-1e-4)),a1,a2,a3,a4,a5,z0,w0,ratio,(v/S["signal"][:,None]).log(),(sd.square()/v).log(),rho.square().amax(-1)],-1)
    gl=torch.stack([torch.full_like(S["mu"],math.log(S["d"])),torch.full_like(S["mu"],math.log(S["n"])),(S["sd"].square()/S["signal"]).log(),0.5*(S["noise"]/S["signal"]).log(),-(S["pi"]*(S["pi"]+1e-9).log()).sum(1),S["c"].particles.hyper.roughness[0]],-1)
    return torch.cat([f,gl[:,None].expand(-1,f.shape[1],-1)],-1), m, v, start
from amortes.nets.kernel.optimum import GivenOptimum, local_maximum
from amortes.nets.kernel.truncated import TruncatedMoments
from amortes.nets.kernel.representers import Representers
RS=12
@torch.no_grad()
def slopes_setup(S):
    c=S["c"]; w=S["w"]; pi=S["pi"][:,:RS]; X=S["places"][:,:RS]
    mu=torch.maximum(S["mu"][:,None],S["mr"][:,:RS]+0.0*S["sr"][:,:RS])
    wt=(w[:,None]*(pi+1e-3)); f=((wt*mu).sum(0)/wt.sum(0))[None]
    at=c.moments(X)
    one=torch.ones(1,len(w),dtype=w.dtype)
    pts=Representers(moments=at,covariance=c.covariance(at,at),share=pi[None]/pi.sum(1,keepdim=True)[None],max_mean=S["mu"][None],max_unexplained=0.3*S["sd"].square()[None])
    loc=local_maximum(c,pts,X)
    opt=GivenOptimum.of(loc,f)
    S["tm"]=TruncatedMoments.of(opt); S["pis"]=(pi+1e-4)/(pi+1e-4).sum(1,keepdim=True)
    S["pie"]=((pi+1e-4).log()+opt.log_evidence[0]).softmax(1)
    ev=opt.log_evidence[0]; S["ev"]=ev
def slope_features(S,Xq):
    m0,v0,m,v=[z[0] for z in S["tm"].posterior(Xq[None])]
    s=v0.sqrt(); r=(v/v0[...,None]).clamp(1e-6,1); sh=(m-m0[...,None])/s[...,None]
    out=[]
    for pi in (S["pis"][:,None],S["pie"][:,None]):
        a=(pi*r).sum(-1).clamp(1e-4,1-1e-4); b=(pi*sh).sum(-1)
        out+=[logit(a),b,(pi*(sh-b[...,None]).square()).sum(-1).clamp_max(20.)]
    out+=[logit(r.amin(-1).clamp(1e-4,1-1e-4)),(S["pis"][:,None]*r.log()).sum(-1).clamp_min(-10)]
    return torch.stack(out,-1)
