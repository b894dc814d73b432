import proto; from proto import *
from fast import Fast
import numpy as np
from amortes.nets.kernel.network import _kept
class _F(torch.autograd.Function):
    @staticmethod
    def forward(ctx,X,fast,need):
        x=X.detach().numpy()
        parts=[fast.value(x[i:i+48],need) for i in range(0,len(x),48)]
        if not need: return torch.from_numpy(np.concatenate(parts))
        ctx.g=np.concatenate([p[1] for p in parts]); return torch.from_numpy(np.concatenate([p[0] for p in parts]))
    @staticmethod
    def backward(ctx,by): return by[:,None]*torch.from_numpy(ctx.g),None,None
def expected(self,state,Xq,name):
    if proto.ARM!="learned" or name!="jes": return proto._expected(self,state,Xq,name)
    if getattr(state,"learned",None) is None:
        with _kept(): state.learned=Fast(proto.NET,state.conditioned.thinned(GAIN_PARTICLES).kriging_believer())
    X=Xq[0].double(); return _F.apply(X,state.learned,torch.is_grad_enabled() and X.requires_grad)[None].to(Xq.dtype)
KernelNetwork.expected_gain=expected
