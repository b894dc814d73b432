import sys,time,json,os,math,torch
torch.set_num_threads(1)
from amortes import Optimizer, Space, Float
from amortes.bench.problems.classic import Classic
from amortes.pretrained import load_pretrained
import amortes.nets.kernel.gains as G
from amortes.nets.kernel.optimum import temper
ARM="as is"; POWER=0.8
_given=G.Gains.given
def balance(ev,lw,iters=60):
    c=torch.zeros_like(lw); w=lw.exp()
    for _ in range(iters):
        W=(lw[:,None]+ev+c[:,None]).softmax(0); c=c+(w.clamp_min(1e-30)/W.mean(1).clamp_min(1e-30)).log().clamp(-3,3)
    return (lw[:,None]+ev+c[:,None]).softmax(0)
def given(self,name):
    if ARM=="as is" or name in self._given: return _given(self,name)
    found,W=_given(self,name)
    with torch.inference_mode(False), torch.no_grad():
        lw=self.conditioned.particles.log_weights[0]; w=W[0,:,0,:-1]; d=self.conditioned.X.shape[-1]
        ev=(w.clamp_min(1e-300).log()-lw[:,None])*(POWER/temper(d) if name!="mes" else 1.0)
        W=W.clone(); W[0,:,0,:-1]=balance(ev,lw); self._given[name]=found,W
    return self._given[name]
G.Gains.given=given
seeds=[int(s) for s in sys.argv[1].split(",")]; out=sys.argv[2]; arms=sys.argv[3].split(",")
net,_=load_pretrained("kernel-real")
names=["michalewicz2","six-hump-camel","drop-wave","beale","egg-holder","styblinski-tang3","hartmann4","ackley4","griewank4","powell4","michalewicz5","dixon-price5","rosenbrock6","cosine8","levy8"]
for seed in seeds:
  for nm in names:
    p=Classic(f"classic-{nm}-noisy"); keys=[f"x{i}" for i in range(p.d)]
    def noisy(x,i): return float(p.value(x[None]))+p.noise_sd*float(torch.randn((),generator=torch.Generator().manual_seed(seed*1000+i),dtype=torch.float64))
    def make(): return Optimizer(Space({k:Float(0.,1.) for k in keys}),goal="maximize",acquisition="auto",seed=seed+100,network=net)
    ARM="as is"; o=make(); first=[]
    for i in range(20):
        t=o.ask(); x=torch.tensor([t.config[k] for k in keys],dtype=torch.float64); y=noisy(x,i); o.tell(t,y); first.append((dict(t.config),y))
    for arm in arms:
        ARM=arm; G.LOSSES=1.0 if arm.endswith("1") else 0.6; o=make()
        for cfg,y in first: o.tell(cfg,y)
        reg={}; cpu=0.0
        for i in range(20,60):
            t0=time.process_time(); t=o.ask(); cpu+=time.process_time()-t0
            x=torch.tensor([t.config[k] for k in keys],dtype=torch.float64); o.tell(t,noisy(x,i))
            if i+1 in (30,40,60):
                c=o.recommend().config; xr=torch.tensor([c[k] for k in keys],dtype=torch.float64); reg[i+1]=p.best-float(p.value(xr[None]))
        with open(out,"a") as f: f.write(json.dumps(dict(f=nm,seed=seed,arm=arm,reg=reg,cpu=cpu/40,d=p.d))+"\n")
