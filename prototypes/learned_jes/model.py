import torch, math
from torch import nn
from torch.nn.functional import silu, softplus
def mlp(i,h,o,depth=2):
    L=[];
    for k in range(depth): L+=[nn.Linear(i if k==0 else h,h),nn.SiLU()]
    L+=[nn.Linear(h,o)]; return nn.Sequential(*L)
class Net(nn.Module):
    def __init__(s,pf,qf,pm,ps,qm,qs,h=32,hq=32,sharp=True):
        super().__init__()
        for n,x in dict(pm=pm,ps=ps,qm=qm,qs=qs).items(): s.register_buffer(n,x)
        s.pair=mlp(pf,h,1); s.ratio=mlp(qf,hq,1)
        nn.init.zeros_(s.ratio[-1].weight); nn.init.zeros_(s.ratio[-1].bias)
        s.jensen=nn.Parameter(torch.zeros(1)); 
    def M(s,pf,w,iters=30):
        D=softplus(s.pair((pf-s.pm)/s.ps)[...,0])      # B P P
        P=w.shape[-1]; eye=torch.eye(P)
        L=w[:,:,None].clamp_min(1e-9).log()+w[:,None].clamp_min(1e-9).log()-D*(1-eye)
        lw=w.clamp_min(1e-9).log(); c=torch.zeros_like(lw)
        for _ in range(iters):
            c=c+0.5*(lw-(L+c[:,:,None]+c[:,None]).logsumexp(-1))
        return (L+c[:,:,None]+c[:,None]).exp()
    def rat(s,qf):
        return torch.sigmoid(qf[...,0]+s.ratio(((qf-s.qm)/s.qs).clamp(-5,5))[...,0])
    def forward(s,b):
        M=s.M(b["pf"],b["w"]); r=s.rat(b["qf"])
        return M,r,gain(M,r,b)
def gain(M,r,b,m=None):
    w=b["w"]; V0=b["v"]+b["noise"][...,None]; V1=b["v"]*r+b["noise"][...,None]; m=b["m"] if m is None else m
    T=M/M.sum(-1,keepdim=True).clamp_min(1e-12)
    O0=ov(b["m"],V0); O1=ov(m,V1)
    A0=torch.einsum('bpr,bprq->bpq',w[:,None].expand(-1,w.shape[1],-1),O0).clamp_min(1e-20)
    A1=torch.einsum('bpr,bprq->bpq',T,O1).clamp_min(1e-20)
    return (w[...,None]*(0.5*(V0/V1).log()+A1.log()-A0.log())).sum(1)
def ov(m,v):
    t=v[:,:,None]+v[:,None]
    return ((2*(v[:,:,None]*v[:,None]).sqrt()/t).clamp_max(1).sqrt())*torch.exp(-0.25*(m[:,:,None]-m[:,None]).square()/t)
