import sys
import gen
from gen import *
from common import *
from amortes.nets.kernel.optimum import GivenOptimum, local_maximum, temper
from amortes.nets.kernel.max_value import log_kernel_of_maximum
def kmeans(W, K):
    # W: P x J ; returns weights pi (K), centres P x K (mean of members)
    J=W.shape[1]; idx=torch.linspace(0,J-1,K).long(); C=W[:,idx]
    for _ in range(12):
        dist=(W[:,:,None].sqrt()-C[:,None].sqrt()).square().sum(0); a=dist.argmin(1)
        one=torch.nn.functional.one_hot(a,K).double(); cnt=one.sum(0)
        C=torch.where(cnt>0,(W@one)/cnt.clamp_min(1),C)
    return cnt/J, C
val=load("val/*.pt")[: int(sys.argv[1]) if len(sys.argv)>1 else 60]
rows=[]
with torch.no_grad():
  for t in val:
    c=rebuild(t); Xq=t["Xq"][None]; truth=t["gain"].double(); d=t["d"]
    conf=RepresenterConfig(count=128,num_global=256,optima=128)
    draws=thompson_draws(c,conf); G=Gains(c,draws); given,Wf=G.given("jes")
    mean,var,m,v=(z[0] for z in given.posterior(Xq)); nv=c.noise_variance[0]
    w0=c.weights[0]; W=Wf[0,:,0,:-1]
    Wn=W/W.sum(1,keepdim=True).clamp_min(1e-30)
    mw=torch.einsum('kqs,ks->kq',m,Wn); vw=torch.einsum('kqs,ks->kq',v,Wn)
    m1,v1=m.mean(-1),v.mean(-1)
    n_=nv[:,None]; H0=entropy(w0[:,None],mean,var+n_)[:,0]
    def given_w(Wx, mm, vv, pi=None, relu=True):
        g=H0[:,None]-entropy(Wx,mm,vv+n_)
        if relu: g=leaky_relu(g,LOSSES)
        return g.mean(1) if pi is None else g@pi
    r={}
    r["32 in use"]=t["gain32"]; r["32 other"]=t["gain32b"]; r["128 (gen)"]=t["gain128"]
    full=torch.stack([H0-torch.stack([entropy(W[:,j:j+1],m[:,:,j],v[:,:,j]+n_)[:,0]])[0] for j in range(W.shape[1])],1)
    r["128"]=leaky_relu(full,LOSSES).mean(1)
    r["W each, avg moments"]=given_w(W,m1,v1)
    r["W each, w-avg moments"]=given_w(W,mw,vw)
    r["W each, w-avg v, prior mean"]=given_w(W,mean,vw)
    # T form
    M=W@W.T/W.shape[1]; wb=W.mean(1)
    def tform(M, mm, vv, wb=wb):
        O=overlaps(mm,vv+n_); T=M/wb[:,None].clamp_min(1e-12)
        A=torch.einsum('pr,prq->pq',T,O).clamp_min(1e-30)
        return H0-(wb[:,None]*(0.5*(vv+n_).log()-A.log())).sum(0)
    r["T form, w-avg"]=tform(M,mw,vw)
    r["T form, w-avg v, prior mean"]=tform(M,mean,vw)
    r["T form, w-avg v, prior mean, O before"]=None
    O0=overlaps(mean,var+n_); T=M/wb[:,None].clamp_min(1e-12)
    A=torch.einsum('pr,prq->pq',T,O0).clamp_min(1e-30)
    r["T form, w-avg v, prior mean, O before"]=H0-(wb[:,None]*(0.5*(vw+n_).log()-A.log())).sum(0)
    for K in (2,4,8,16):
        pi,C=kmeans(W,K); r[f"{K} clusters of W, w-avg"]=given_w(C,mw,vw,pi)
    # parts of evidence
    pts=draws.likeliest(c,16); loc=local_maximum(c,pts,draws.optima.x)
    l2,lv=loc.with_value(draws.optima.f)
    tp=temper(d); before=c.particles.log_weights[0][:,None]
    _,hi=l2.highest(4)
    ev={"value":lv,"flat":l2.log_flat,"sharp":l2.log_density()-l2.log_flat,"highest":hi}
    for nm,ks in (("value",["value"]),("value+flat",["value","flat"]),("no highest",["value","flat","sharp"]),("no flat",["value","sharp","highest"]),("value+highest",["value","highest"]),("no value",["flat","sharp","highest"]),("flat+sharp",["flat","sharp"])):
        e=sum(ev[k] for k in ks)[0]; Wx=(before+tp*e).softmax(0); r["W of "+nm]=given_w(Wx,mw,vw)
    # value without the zero gradient
    at=c.moments(draws.optima.x); lv0=-0.5*((draws.optima.f[:,None]-at.mean)**2/at.variance)-0.5*at.variance.log()
    r["W of plain value"]=given_w((before+tp*lv0[0]).softmax(0),mw,vw)
    r["W of plain value, flat, sharp"]=given_w((before+tp*(lv0+ev["flat"]+ev["sharp"])[0]).softmax(0),mw,vw)
    r["W of plain value, flat, sharp, highest"]=given_w((before+tp*(lv0+loc.log_density()+loc.highest(4)[1])[0]).softmax(0),mw,vw)
    kern=log_kernel_of_maximum(draws.maximum,draws.optima.f).logsumexp(-1)[0]
    for s in (0.5,1.0): r[f"W of f* density ^{s}"]=given_w((before+s*tp*kern).softmax(0),mw,vw)
    r["W unchanged"]=given_w(w0[:,None],mw,vw)
    rows.append({k:metrics(x,truth) for k,x in r.items()}|{"n":t["n"],"d":d})
names=[k for k in rows[0] if k not in("n","d")]
print(len(rows)); table(rows,names)
import pickle; pickle.dump(rows,open("oracle.pkl","wb"))
