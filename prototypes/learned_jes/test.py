"""Fresh tasks, looked at once. usage: test.py net count seed0"""
import sys, pickle, os
import proto
from proto import *
from gen import *
from bal_fn import gain_of
net2=load_net(sys.argv[1]); count=int(sys.argv[2]); seed=int(sys.argv[3]); out=sys.argv[4]
cells=[(d,n) for n in (20,50,100) for d in (1,2,4,6,10,16)]+[(d,15) for d in (2,6,10)]
rows=[]; made=0
with torch.no_grad():
  while made<count:
    dn=cells[made%len(cells)]
    try:
        hyper,X,y,kind=sample_task(seed,dn); fitted=fit_warped(net,X,y,maximise=True); seed+=1
        if fitted.noise_share<0.1: continue
        d,n=dn; c=fitted.state.conditioned.thinned(GAIN_PARTICLES).kriging_believer(); lw=c.particles.log_weights[0]; w0=lw.exp(); n_=c.noise_variance[0][:,None]
        d32=thompson_draws(c,RepresenterConfig()); seen=search_points(fitted,Gains(c,d32),seed,d,n)
        rng=torch.Generator().manual_seed(seed+1)
        pick=lambda A,k: A[torch.randperm(len(A),generator=rng)[:k]]
        climbs=torch.cat(seen[1:]) if len(seen)>1 else seen[0]
        parts=[pick(seen[0],60),pick(climbs,72),pick(d32.X[0],24)]; rest=192-sum(map(len,parts)); glob_=torch.rand(rest,d,generator=rng,dtype=torch.float64)
        if d>1:
            h=rest//2; b=fitted.best_points(8); b=b[torch.randint(len(b),(h,),generator=rng)]; glob_[:h]=(b+0.1*torch.randn(h,d,generator=rng,dtype=torch.float64)).clamp(0,1)
        Xq=torch.cat(parts+[glob_])[None]; r={}
        for nm,conf in (("256",RepresenterConfig(count=256,num_global=1024,optima=256)),("32",None),("32 other",RepresenterConfig(count=96,num_global=192,optima=32))):
            dr=d32 if conf is None else thompson_draws(c,conf); given,Wf=Gains(c,dr).given("jes"); W=Wf[0,:,0,:-1]
            Wb=balance(W.clamp_min(1e-300).log()-lw[:,None],lw)
            r[nm]=gain_of(given,W,w0,n_,Xq)[0]; r[nm+" balanced"]=gain_of(given,Wb,w0,n_,Xq)[0]
        r["learned"]=Learned(net2,c)(Xq[0])
        ref,refb=r.pop("256"),r.pop("256 balanced")
        o={"d":d,"n":n,"ref":{k:metrics(v,ref) for k,v in r.items()},"bal":{k:metrics(v,refb) for k,v in r.items()},"refs":metrics(ref,refb)}
        rows.append(o); made+=1
        pickle.dump(rows,open(out,"wb"))
        if made%8==0: print(made,flush=True)
    except Exception as e: print("fail",seed,repr(e)[:200],flush=True); seed+=1
def report(rows,which):
    import numpy as np
    for k in ("learned","32","32 balanced","32 other","32 other balanced"):
        a=np.array([q[which][k] for q in rows]); print(f"{k:22s}"," ".join("%.3f±%.3f"%(a[:,i].mean(),a[:,i].std(ddof=1)/len(a)**.5) for i in range(3)))
    for base in ("32","32 balanced"):
        for k in ("learned","32 other balanced" if base!="32" else "32 other"):
            a=np.array([np.array(q[which][k])-np.array(q[which][base]) for q in rows]); print(f"{k} - {base}"," ".join("%+.3f±%.3f"%(a[:,i].mean(),a[:,i].std(ddof=1)/len(a)**.5) for i in range(3)))
for which in ("bal","ref"):
    print("=== against",which,len(rows)); report(rows,which)
    for n in (15,20,50,100):
        rr=[q for q in rows if q["n"]==n]; 
        if len(rr)>2: print("-- n",n,len(rr)); report(rr,which)
    for d in (1,2,4,6,10,16):
        rr=[q for q in rows if q["d"]==d]; 
        if len(rr)>2: print("-- d",d,len(rr)); report(rr,which)
