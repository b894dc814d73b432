import sys
from gen import *
from common import *
from amortes.oracles.alpha_scores import alpha_tasks, grid, RELIABLE, RESOLUTION
from amortes.nets.kernel import KernelConfig, KernelNetwork
from amortes.pretrained import load_pretrained
def balance(ev, lw, iters=60):  # ev: P x J tempered log evidence, lw: P
    c=torch.zeros_like(lw); w=lw.exp()
    for _ in range(iters):
        W=(lw[:,None]+ev+c[:,None]).softmax(0); wb=W.mean(1).clamp_min(1e-30)
        c=c+ (w.clamp_min(1e-30)/wb).log().clamp(-3,3)
    return (lw[:,None]+ev+c[:,None]).softmax(0)
allrows=[]
with torch.no_grad():
  for pname in ("robust","paper"):
    pr=PRIORS[pname]; network=KernelNetwork(KernelConfig(encoder=None),pr).eval()
    rows=[]
    for cell,task in alpha_tasks(network,pr,[c for c in grid(pr) if c[0]<=2],4,botorch=False):
        truth=task.gain[:,2].double()
        if task.reliability[2]<RELIABLE or truth.max()<RESOLUTION: continue
        st=network.condition(task.X[None],task.y[None])
        c=st.conditioned.thinned(12).kriging_believer(); Xq=task.Xq[None]
        lw=c.particles.log_weights[0]; n_=c.noise_variance[0][:,None]
        at=c.moments(Xq); mean,var=at.mean[0],at.variance[0]
        H0=entropy(lw.exp()[:,None],mean,var+n_)[:,0]+0.5*math.log(2*math.pi*math.e)
        r={}
        for nm,conf in (("32",RepresenterConfig()),("256",RepresenterConfig(count=256,num_global=1024,optima=256))):
            draws=thompson_draws(c,conf); G=Gains(c,draws); given,Wf=G.given("jes"); W=Wf[0,:,0,:-1]
            ev=(W.clamp_min(1e-300).log()-lw[:,None])
            _,_,m,v=(z[0] for z in given.posterior(Xq)) if False else [z[0] for z in given.posterior(Xq)]
            def gain(Wx):
                M,V=m.reshape(m.shape[0],-1),(v+n_[...,None]).reshape(m.shape[0],-1)
                q,J=m.shape[1:]
                E=overlap_entropy(Wx[None,:,None,:].expand(1,-1,q,-1), m[None], (v+n_[...,None])[None])[0]
                return leaky_relu(H0[:,None]-E,LOSSES).mean(1), (H0[:,None]-E).mean(1)
            from amortes.nets.kernel.optimum import temper
            Wb=balance(ev*0.8/temper(Xq.shape[-1]),lw)
            x,x2=gain(W); y,y2=gain(Wb); r[nm+" as is"]=x; r[nm+" as is no leak"]=x2; r[nm+" new"]=y; r[nm+" new no leak"]=y2
        o={k:(rank_correlation(x.double(),truth), 100*float(1-truth[x.argmax()]/truth.max()), float(x[truth.topk(len(truth)//4).indices].mean()/truth.topk(len(truth)//4).values.mean())) for k,x in r.items()}
        rows.append(o); allrows.append(o)
        print(pname,cell,"", "",flush=True)
    print(pname,len(rows)); table(rows,list(rows[0]))
print("all",len(allrows)); table(allrows,list(allrows[0]))

import numpy as np
for which,sel in (("all",allrows),):
  for a,b in (("32 new","32 as is"),("32 new no leak","32 as is"),("32 as is no leak","32 as is"),("256 new no leak","256 as is")):
    D=np.array([np.array(o[a])-np.array(o[b]) for o in sel]); print("paired",a,"-",b," ".join("%+.4f±%.4f"%(D[:,i].mean(),D[:,i].std(ddof=1)/len(D)**.5) for i in range(3)))
