import sys
exec(open("timing.py").read().split("net2=load_net")[0])
import protofast; from protofast import _F
net2=load_net(sys.argv[1])
def med(f,k=9):
    ts=[]
    for _ in range(k):
        t=time.process_time(); r=f(); ts.append(time.process_time()-t)
    ts.sort(); return 1e3*ts[len(ts)//2], r
for d,n in ((2,20),(6,20),(6,50),(10,50),(6,100)):
    seed=77
    with torch.no_grad():
      while True:
        hyper,X,y,kind=sample_task(seed,(d,n)); fitted=fit_warped(net,X,y,maximise=True)
        if fitted.noise_share>0.1: break
        seed+=1
      cond=fitted.state.conditioned.thinned(12).kriging_believer()
      def old():
        G=Gains(cond,thompson_draws(cond,RepresenterConfig())); G.given("jes"); return G
      a,G=med(old); b,L=med(lambda: Fast(net2,cond))
      Xq=torch.rand(1,192,d,dtype=torch.float64); x10=torch.rand(1,10,d,dtype=torch.float64)
      a1,_=med(lambda: G.at("jes",Xq).mean(2)); b1,_=med(lambda: _F.apply(Xq[0],L,False))
    def grad():
        x=x10.clone().requires_grad_(); torch.autograd.grad(G.at("jes",x).mean(2).sum(),x)
    def grad2():
        x=x10[0].clone().requires_grad_(); torch.autograd.grad(_F.apply(x,L,True).sum(),x)
    a2,_=med(grad,21); b2,_=med(grad2,21)
    print(f"d {d} n {n}: 32 draws {a:.1f} {a1:.1f} {a2:.1f} = {a+a1+10*a2:.0f} | learned {b:.1f} {b1:.1f} {b2:.1f} = {b+b1+10*b2:.0f}",flush=True)
