from gen import *
from common import *
from truthlib import balance
from amortes.nets.kernel.representers import choose_draws
val=load("val/*.pt"); R={}
def fit_offsets(ev,lw,iters=100):
    c=torch.zeros_like(lw); w=lw.exp()
    for _ in range(iters):
        W=(lw[:,None]+ev+c[:,None]).softmax(0); c=c+(w/W.mean(1).clamp_min(1e-30)).log().clamp(-3,3)
    return c
with torch.no_grad():
  for t in val:
    c=rebuild(t); lw=c.particles.log_weights[0]
    conf=RepresenterConfig(count=128,num_global=256,optima=256)
    dr=thompson_draws(c,conf); W=Gains(c,dr).given("jes")[1][0,:,0,:-1]
    part,_=choose_draws(c.particles.log_weights,256,conf.draws); part=part[0]
    ev=W.clamp_min(1e-300).log()-lw[:,None]
    # equal-probability quantile draws: scores as they are
    def sc(L,idx): return float(L.log_softmax(0)[part[idx],idx].mean())
    a,b=torch.arange(0,256,2),torch.arange(1,256,2)
    allx=torch.arange(256)
    o={"prior":float((lw[part]).mean())}
    for be in (0.5,1.0,1.5,2.0,3.0):
        e=be*ev
        o[f"as is {be}"]=sc(lw[:,None]+e,allx)
        ca=fit_offsets(e[:,a],lw); cb=fit_offsets(e[:,b],lw)
        o[f"balanced {be}"]=0.5*(sc(lw[:,None]+e+ca[:,None],b)+sc(lw[:,None]+e+cb[:,None],a))
    R.setdefault(t["d"],[]).append(o)
import numpy as np
for d in sorted(R)+["all"]:
    rows=R[d] if d!="all" else sum(R.values(),[])
    base=np.array([o["prior"] for o in rows])
    print(d,len(rows)," ".join(f"{k}: {np.mean([o[k] for o in rows]-base):+.3f}±{np.std([o[k] for o in rows]-base)/len(rows)**.5:.3f}" for k in rows[0] if k!="prior"))
    df=np.array([o["balanced 1.0"]-o["as is 1.0"] for o in rows]); print("   balanced - as is %+.4f ± %.4f"%(df.mean(),df.std(ddof=1)/len(df)**.5))
