import sys,os,time
from common import *
from feats3 import *
from truthlib import balance
from torch.nn.functional import leaky_relu
LOSSES=0.6
def extract(t, ref=None):
    c=rebuild(t); S=setup3(c); pf,raw=pair_features(S)
    with torch.no_grad(): qf,m,v=q3(S,t["Xq"])
    lw=c.particles.log_weights[0]; W=t["w"].double(); w0=lw.exp(); n_=c.noise_variance[0][:,None]
    Wb=balance(W.clamp_min(1e-30).log()-lw[:,None],lw)
    mw,vw=t["mbar"].double(),t["vbar"].double()
    if ref is not None: Wb,gb=ref["wb"].double(),ref["gainb"]
    H0=entropy(w0[:,None],m,v+n_)[:,0]
    gm=leaky_relu(H0[:,None]-entropy(Wb,mw,vw+n_),LOSSES).mean(1)
    o=dict(pf=pf,qf=qf,m=m,v=v,noise=n_[:,0],w=w0,M=Wb@Wb.T/Wb.shape[1],Ma=W@W.T/W.shape[1],vw=vw,mw=mw,gm=gm,ga=t["gain"],
           v1=t["vbar"],d=torch.tensor(t["d"]),n=torch.tensor(t["n"]))
    if ref is not None: o["gb"]=gb; o["g32"]=t["gain32"]; o["g32b"]=t["gain32b"]; o["g128"]=t["gain128"]
    return {k:x.float() for k,x in o.items()}
if __name__=="__main__":
    out=sys.argv[1]; os.makedirs(out,exist_ok=True)
    if out=="ival":
        vb=torch.load("val_bal.pt",weights_only=False); L=[extract(t,vb[t["seed"]]) for t in load("val/*.pt")]
        torch.save(L,"ival/all.pt"); print(len(L)); sys.exit()
    for f in sorted(glob.glob("data/*.pt")):
        g=f"{out}/{os.path.basename(f)}"
        if os.path.exists(g): continue
        t0=time.time(); L=[extract(t) for t in torch.load(f,weights_only=False)]; torch.save(L,g)
    print(f"{time.time()-t0:.1f}s last shard")
