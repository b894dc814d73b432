import sys, time
from gen import *
from common import *
from amortes.nets.kernel.optimum import temper
from truthlib import balance
val=load("val/*.pt")
rows=[]; rowsb=[]; store={}
C=0.5*math.log(2*math.pi*math.e)
def gain_of(given,W,w0,n_,Xq,relu=True):
    mean,var,m,v=[z for z in given.posterior(Xq)]
    q=m.shape[2]
    H0=overlap_entropy(w0[None,:,None].expand(1,-1,q),mean,var+n_[None])[0]
    E=overlap_entropy(W[None,:,None,:].expand(1,-1,q,-1),m,v+n_[None,...,None])[0]
    g=H0[:,None]-E
    g=leaky_relu(g,LOSSES) if relu else g
    return g.mean(1),(m[0],v[0])
with torch.no_grad():
  for t in val:
    c=rebuild(t); Xq=t["Xq"][None]; d=t["d"]; lw=c.particles.log_weights[0]; w0=lw.exp(); n_=c.noise_variance[0][:,None]
    r={}
    for nm,conf in (("32",RepresenterConfig()),("32b",RepresenterConfig(count=96,num_global=192,optima=32)),("128",RepresenterConfig(count=128,num_global=256,optima=128)),("256",RepresenterConfig(count=256,num_global=1024,optima=256))):
        dr=thompson_draws(c,conf); given,Wf=Gains(c,dr).given("jes"); W=Wf[0,:,0,:-1]
        Wb=balance(W.clamp_min(1e-300).log()-lw[:,None],lw)
        r[nm],(m,v)=gain_of(given,W,w0,n_,Xq); r[nm+" bal"],_=gain_of(given,Wb,w0,n_,Xq)
        if nm=="256":
            wb=W.mean(1); kl=float((wb*(wb.clamp_min(1e-30).log()-lw)).sum()); err=float((Wb.mean(1)-w0).abs().sum())
            Wn=Wb/Wb.sum(1,keepdim=True).clamp_min(1e-30); mw=torch.einsum('kqs,ks->kq',m,Wn); vw=torch.einsum('kqs,ks->kq',v,Wn)
            ref,refb=r.pop("256"),r.pop("256 bal")
            Wref=Wb
        if nm=="128": W128=Wb
        if nm=="32": W32=Wb
    at=c.moments(Xq); mean,var=at.mean[0],at.variance[0]
    H0=entropy(w0[:,None],mean,var+n_)[:,0]; O0=overlaps(mean,var+n_); Ow=overlaps(mw,vw+n_)
    def tform(M,O=Ow):
        M=M/M.sum(); wb=M.sum(1); T=M/wb[:,None].clamp_min(1e-30)
        A=torch.einsum('pr,prq->pq',T,O).clamp_min(1e-30)
        return H0-(wb[:,None]*(0.5*(vw+n_).log()-A.log())).sum(0)
    def each(W): return leaky_relu(H0[:,None]-entropy(W,mw,vw+n_),LOSSES).mean(1)
    r["each: W128 bal, avg mom"]=each(W128); r["each: W32 bal, avg mom"]=each(W32)
    r["T: W128 bal"]=tform(W128@W128.T); r["T: W128 bal, O before"]=tform(W128@W128.T,O0); r["T: W32 bal"]=tform(W32@W32.T)
    r["T = w"]=tform(w0[:,None]*w0[None]); r["T = w, O before"]=tform(w0[:,None]*w0[None],O0)
    r["T = I"]=tform(w0.diag())
    rows.append({k:metrics(x,ref) for k,x in r.items()}); rowsb.append({k:metrics(x,refb) for k,x in r.items()}|{"ref as is":metrics(ref,refb)})
    store[t["seed"]]=dict(gainb=refb.float(),mwb=mw.float(),vwb=vw.float(),wb=Wref.float(),kl=kl,d=d,n=t["n"])
    print(d,t["n"],f"kl {kl:.3f} err {err:.4f} corr(ref,refb) {rank_correlation(ref,refb):.3f}",flush=True)
torch.save(store,"val_bal.pt")
print("against as is"); table(rows,list(rows[0])); print("against balanced"); table(rowsb,list(rowsb[0]))
