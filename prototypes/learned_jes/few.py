import sys
from gen import *
from common import *
from truthlib import balance
from bal_fn import gain_of
import model
from model import *
from feats import *
sd=torch.load("net.pt"); net=Net(sd["pm"].numel(),sd["qm"].numel(),sd["pm"],sd["ps"],sd["qm"],sd["qs"]); 
sd2=torch.load("net2.pt")["net"]
net.load_state_dict(sd)
with torch.no_grad():
    for k in ("pm","ps"): getattr(net,k).copy_(sd2[k])
    net.pair.load_state_dict({k[5:]:x for k,x in sd2.items() if k.startswith("pair.")})
val=load("val/*.pt"); vb=torch.load("val_bal.pt",weights_only=False); ft=torch.load("gval/all.pt")
rows=[]; rowsb=[]
with torch.no_grad():
  for t,o in zip(val,ft):
    c=rebuild(t); Xq=t["Xq"][None]; d=t["d"]; lw=c.particles.log_weights[0]; w0=lw.exp(); n_=c.noise_variance[0][:,None]
    ref,refb=t["gain"].double(),vb[t["seed"]]["gainb"].double()
    M=net.M(o["pf"][None],o["w"][None])[0].double(); T=M/M.sum(1,keepdim=True)
    at=c.moments(Xq); m0,v0=at.mean[0],at.variance[0]
    H0=entropy(w0[:,None],m0,v0+n_)[:,0]
    def tf(mm,vv,T=T):
        A=torch.einsum('pr,prq->pq',T,overlaps(mm,vv+n_)).clamp_min(1e-30)
        return H0-(w0[:,None]*(0.5*(vv+n_).log()-A.log())).sum(0)
    r={}
    for s_ in (4,8,12,16,32):
        dr=thompson_draws(c,RepresenterConfig(optima=s_)); given,Wf=Gains(c,dr).given("jes"); W=Wf[0,:,0,:-1]
        Wb=balance(W.clamp_min(1e-300).log()-lw[:,None],lw)
        if s_ in (16,32): r[f"{s_} as is"]=gain_of(given,W,w0,n_,Xq)[0]
        r[f"{s_} balanced"],(m,v)=gain_of(given,Wb,w0,n_,Xq)
        m1,v1=m.mean(-1),v.mean(-1); Wn=Wb/Wb.sum(1,keepdim=True); mw=torch.einsum('kqs,ks->kq',m,Wn); vw=torch.einsum('kqs,ks->kq',v,Wn)
        r[f"{s_} T learned, plain avg"]=tf(m1,v1); r[f"{s_} T learned, w-avg"]=tf(mw,vw)
        r[f"{s_} bal, avg moments"]=leaky_relu(H0[:,None]-entropy(Wb,m1,v1+n_),LOSSES).mean(1)
        r[f"{s_} bal, w-avg moments"]=leaky_relu(H0[:,None]-entropy(Wb,mw,vw+n_),LOSSES).mean(1)
        if s_==16: r["16 T of draws bal, w-avg"]=tf(mw,vw,(Wb@Wb.T)/(Wb@Wb.T).sum(1,keepdim=True))
    r["learned (net)"]=gain(M[None].float(),net.rat(o["qf"][None]),{k:x[None] for k,x in o.items()})[0]
    rows.append({k:metrics(x,ref) for k,x in r.items()}); rowsb.append({k:metrics(x,refb) for k,x in r.items()})
print("against as is"); table(rows,list(rows[0])); print("against balanced"); table(rowsb,list(rowsb[0]))
