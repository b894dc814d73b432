import sys,time,glob,math,argparse
import torch,numpy as np
from common import metrics, table
import model
from model import *
torch.set_num_threads(1); torch.manual_seed(0)
ap=argparse.ArgumentParser(); ap.add_argument("--minutes",type=float,default=2); ap.add_argument("--out",default="net2.pt"); ap.add_argument("--target",default="gm")
ap.add_argument("--h",type=int,default=32); ap.add_argument("--hq",type=int,default=32); ap.add_argument("--lr",type=float,default=3e-3); ap.add_argument("--init",default="")
ap.add_argument("--bs",type=int,default=16); ap.add_argument("--data",default="idata"); ap.add_argument("--val",default="ival/all.pt"); ap.add_argument("--slopes",type=int,default=1)
a=ap.parse_args()
L=[]
for f in sorted(glob.glob(a.data+"/*.pt")): L+=torch.load(f)
L=[o for o in L if o["qf"].shape[:2]==(12,96)]
def prep(o):
    o=dict(o); q=o["qs"] if "qs" in o else None
    base=o["qf"][...,0]
    if a.slopes: o["qf"]=torch.cat([o["qf"],q],-1); base=q[...,0]
    o["base"]=base; o["shift0"]=q[...,1] if a.slopes else o["qf"][...,1]; o.pop("qs",None); return o
L=[prep(o) for o in L]
B={k:torch.stack([o[k] for o in L]) for k in L[0]}
for k in ("pf","qf"): print(k,"finite",bool(B[k].isfinite().all()), tuple(B[k].shape))
val=[{k:x[None] for k,x in prep(o).items()} for o in torch.load(a.val)]
pfm=B["pf"].flatten(0,2); qfm=B["qf"].flatten(0,2)
class Net2(Net):
    def __init__(s,*x,**k):
        super().__init__(*x,**k); hq=s.ratio[-1].in_features; s.ratio[-1]=nn.Linear(hq,2); nn.init.zeros_(s.ratio[-1].weight); nn.init.zeros_(s.ratio[-1].bias); s.scale=nn.Parameter(torch.zeros(1))
    def both(s,b):
        y=s.ratio(((b["qf"]-s.qm)/s.qs).clamp(-5,5))
        return torch.sigmoid(b["base"]+y[...,0]), s.scale*b["shift0"]+y[...,1]
    def forward(s,b):
        M=s.M(b["pf"],b["w"]); r,sh=s.both(b); m=b["m"]+sh*b["v"].sqrt()
        return M,r,m,gain(M,r,b,m)
net=Net2(pfm.shape[-1],qfm.shape[-1],pfm.mean(0),pfm.std(0)+1e-3,qfm.mean(0),qfm.std(0)+1e-3,a.h,a.hq)
if a.init: net.load_state_dict(torch.load(a.init)["net"])
print("params",sum(p.numel() for p in net.parameters()),"datasets",len(L))
tgt="gb" if a.target=="gm" else "ga"
def evaluate(byd=False):
    rows=[]
    with torch.no_grad():
        for o in val:
            M,r,m,g=net(o); tr=(o["vw"]/o["v"]).clamp(1e-4,1); Mt=o["M"]
            x={"learned":g,"learned T, teacher moments":gain(M,tr,o,o["mw"]),"learned, teacher mean":gain(M,r,o,o["mw"]),"learned, teacher variance":gain(M,tr,o,m),"32 in use":o["g32"]}
            rows.append({k:metrics(v.flatten(),o[tgt].flatten()) for k,v in x.items()}|{"d":int(o["d"])})
    table(rows,[k for k in rows[0] if k!="d"])
    if byd:
        for d in (1,2,4,6,10,16): print(d,end=" "); table([q for q in rows if q["d"]==d],["learned"])
    sys.stdout.flush()
decay=[p for n,p in net.named_parameters()]
opt=torch.optim.AdamW(net.parameters(),lr=a.lr,weight_decay=1e-3)
t0=time.process_time(); step=0; run=[]; last=0
N=len(L); total=a.minutes*60
while True:
    el=time.process_time()-t0
    if el>total: break
    lr=a.lr*min(1,step/50)*(0.5*(1+math.cos(math.pi*min(1,el/total)))+0.01)
    for gq in opt.param_groups: gq["lr"]=lr
    idx=torch.randint(N,(a.bs,)); qi=torch.randperm(96)[:64]
    b={k:(x[idx][...,qi,:] if k=="qf" else x[idx][...,qi] if x.ndim>=2 and x.shape[-1]==96 else x[idx]) for k,x in B.items()}
    M,r,m,g=net(b); w=b["w"]
    Mt=b["M"]; Tt=Mt/Mt.sum(-1,keepdim=True).clamp_min(1e-9); T=M/M.sum(-1,keepdim=True).clamp_min(1e-12)
    lT=(w[...,None]*Tt*((Tt+1e-6).log()-(T+1e-6).log())).sum((1,2)).mean()
    n_=b["noise"][...,None]; V1=b["v"]*r+n_; e=(V1.log()-(b["vw"].clamp_min(1e-9)+n_).log())
    gs=b[a.target]; sd=gs.std(-1,keepdim=True).clamp_min(1e-4)
    lv=((w[...,None]*e.square()).sum(1)/(2*sd).square()).clamp_max(10).mean()
    lm=((w[...,None]*(m-b["mw"]).square()/(b["v"]+n_)).sum(1)).clamp_max(4).mean()
    u=(g-gs)/sd; u=u-u.mean(-1,keepdim=True)
    lg=torch.nn.functional.huber_loss(u,torch.zeros_like(u),delta=1.0)
    tau=0.5*sd; pt=torch.softmax(gs/tau,-1)
    ls=(pt*(torch.log_softmax(gs/tau,-1)-torch.log_softmax(g/tau,-1))).sum(-1).mean()
    loss=lT+0.3*lv+lm+lg+ls
    opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(),1.0); opt.step(); step+=1
    run.append((lT.item(),lv.item(),lm.item(),lg.item(),ls.item()))
    if el-last>total/3: last=el; print(f"{el:.0f}s step {step}",np.mean(run[-200:],0).round(4)); evaluate()
print(f"done {step} steps",np.mean(run[-200:],0).round(4)); evaluate(True); torch.save(dict(net=net.state_dict(),h=a.h,hq=a.hq,slopes=a.slopes),a.out)
