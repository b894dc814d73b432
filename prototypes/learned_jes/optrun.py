import sys,time,json,os
import proto, protofast
from proto import *
from amortes import Optimizer, Space, Float
from amortes.bench.problems.classic import Classic
from amortes.pretrained import load_pretrained
proto.NET=load_net(sys.argv[1]); seeds=[int(s) for s in sys.argv[2].split(",")]; out=sys.argv[3]; arms=sys.argv[4].split(",")
net,_=load_pretrained("kernel-real")
names=["michalewicz2","six-hump-camel","drop-wave","beale","egg-holder","styblinski-tang3","hartmann4","ackley4","griewank4","powell4","michalewicz5","dixon-price5","rosenbrock6","cosine8","levy8"]
done=set()
if os.path.exists(out):
    for l in open(out): r=json.loads(l); done.add((r["f"],r["seed"],r["arm"]))
for seed in seeds:
  for nm in names:
    p=Classic(f"classic-{nm}-noisy"); keys=[f"x{i}" for i in range(p.d)]
    def noisy(x,i): return float(p.value(x[None]))+p.noise_sd*float(torch.randn((),generator=torch.Generator().manual_seed(seed*1000+i),dtype=torch.float64))
    def make(): return Optimizer(Space({k:Float(0.,1.) for k in keys}),goal="maximize",acquisition="auto",seed=seed+100,network=net)
    first=None
    for arm in arms:
        if (nm,seed,arm) in done: continue
        proto.ARM="as is"
        if first is None:
            o=make(); first=[]
            for i in range(20):
                t=o.ask(); x=torch.tensor([t.config[k] for k in keys],dtype=torch.float64); y=noisy(x,i); o.tell(t,y); first.append((dict(t.config),y))
        proto.ARM=arm; o=make(); 
        for cfg,y in first: o.tell(cfg,y)
        reg={}; cpu=0.0
        for i in range(20,60):
            t0=time.process_time(); t=o.ask(); cpu+=time.process_time()-t0
            x=torch.tensor([t.config[k] for k in keys],dtype=torch.float64); o.tell(t,noisy(x,i))
            if i+1 in (30,40,60):
                c=o.recommend().config; xr=torch.tensor([c[k] for k in keys],dtype=torch.float64)
                reg[i+1]=p.best-float(p.value(xr[None]))
        with open(out,"a") as f: f.write(json.dumps(dict(f=nm,seed=seed,arm=arm,reg=reg,cpu=cpu/40,scale=p.noise_sd))+"\n")
        print(nm,seed,arm,{k:round(math.log10(max(v,1e-9)),2) for k,v in reg.items()},f"{1e3*cpu/40:.0f} ms",flush=True)
