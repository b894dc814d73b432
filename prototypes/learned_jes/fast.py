"""The learned gain in NumPy with gradients by hand."""
import math, numpy as np, torch
from amortes.nets.kernel import numpy_kernels as nk
from amortes.nets.kernel.conditioning import VARIANCE_FLOOR
from feats3 import *
QUIET=np.errstate(all="ignore")
C0=math.sqrt(2/math.pi)
def cut(z):
    lam=C0/torch.special.erfcx(torch.from_numpy(-math.sqrt(.5)*z)).numpy()
    dl=lam+z; return lam,dl,1.0-lam*dl
def expit(x): return 0.5+0.5*np.tanh(0.5*x)
class Fast:
    def __init__(self,net,c):
        S=setup3(c); pf,_=pair_features(S)
        w=S["w"]; M=net.M(pf[None],w[None])[0]; self.T=(M/M.sum(1,keepdim=True)).numpy(); self.w=w.numpy()
        self.build(net,c,S)
    def build(self,net,c,S):
        h=c.particles.hyper
        self.kernel=c.prior.kernel; self.tm=c.prior.mean.scale**2; self.loc=c.prior.mean.loc
        self.ell=h.lengthscale[0].numpy()[:,None]; self.warp=nk.Warp(h.warp[0].numpy()[:,None].reshape(len(self.w),2,-1)) if h.warp is not None else None
        self.rough=0.0 if c.roughness is None else c.roughness[0].numpy(); self.signal=c.signal[0].numpy()
        self.known=np.concatenate([c.V[0].numpy(),S["V"][0].numpy()],axis=1); self.n=c.V.shape[2]
        self.W=c.whitener[0].numpy(); self.a=c.coefficients[0].numpy()[:,None]; self.pv=c.prior_variance[0].numpy()[:,None]
        self.whR=S["wh"][0].numpy(); self.sr=S["sr"].numpy()[...,None]; mr=S["mr"].numpy()
        w=S["w"]; self.mub=float((w*S["mu"]).sum()); self.sdb2=float((w*(S["sd"]**2+(S["mu"]-self.mub)**2)).sum())
        fr=np.maximum(self.mub,mr)[...,None]; self.fr=fr; self.g=np.clip((fr-mr[...,None])/self.sr,-6,6)
        mix=S["mix"].numpy(); self.pi=np.stack([np.broadcast_to(mix,mr.shape),S["own"].numpy()],1)   # P x 2 x R
        self.noise=S["noise"].numpy()[:,None]; self.gap=(S["mu"].numpy()-self.mub)[:,None]
        d,n=S["d"],S["n"]; P=len(w); one=np.ones(P)
        self.const=np.stack([one*math.log(d),one*math.log(n),np.log(S["sd"].square().numpy()/S["signal"].numpy()),0.5*np.log(self.noise[:,0]/S["signal"].numpy()),one*float(-(S["mix"]*(S["mix"]+1e-9).log()).sum()),h.roughness[0].numpy()],1)
        # layers
        L=[m for m in net.ratio if isinstance(m,nn_Linear)]; self.W1,self.b1=L[0].weight.numpy()/net.qs.numpy(),L[0].bias.numpy(); self.W1r=L[0].weight.numpy()
        self.W2,self.b2,self.W3,self.b3=L[1].weight.numpy(),L[1].bias.numpy(),L[2].weight.numpy(),L[2].bias.numpy()
        self.qm,self.qs=net.qm.numpy(),net.qs.numpy(); self.scale=float(net.scale)
    @QUIET
    def value(self,X,grad=False):
        if self.warp is None: V,stretch=X[None]/self.ell,1/self.ell
        else:
            U,sl=self.warp.values_and_slopes(X[None]); V,stretch=U/self.ell,sl/self.ell
        n=self.n
        r2=nk.square_distance(self.known,V); val,slope,_=nk.value_and_slopes(self.kernel,r2,self.rough)
        kap=np.clip(val[:,n:],1e-12,1.0); K=self.signal*val+self.tm
        wht=self.W@K[:,:n]; m=(self.a@K[:,:n])[:,0]+self.loc
        v=np.maximum(self.pv-np.square(wht).sum(1),VARIANCE_FLOOR*self.pv); s=np.sqrt(v)
        cov=K[:,n:]-self.whR.swapaxes(1,2)@wht
        rho=np.clip(cov/(s[:,None]*self.sr),-0.9999,0.9999); rho2=rho*rho; left=1-rho2; root=np.sqrt(left)
        e=(self.fr-m[:,None])/s[:,None]; z0=(e-rho*self.g)/root; z=np.clip(z0,-8,8); lam,dl,wid=cut(z)
        rk=np.sqrt(kap); lk=np.maximum(np.log(kap),-25); 
        F=[left*wid, rho*self.g-root*lam, rho2, np.abs(rho), rho2*rho2, kap, kap*kap, rk, lk, wid, np.log(left)]
        pooled=[self.pi@f for f in F]                   # each P x 2 x Q
        P,Q=m.shape
        st=pooled[0]; stc=np.clip(st,1e-4,1-1e-4)
        cols=[]
        for i in (0,1): cols+=[np.log(stc[:,i]/(1-stc[:,i]))]+[p[:,i] for p in pooled[1:]]
        q0=np.sqrt(v+self.sdb2); zz=np.clip((self.mub-m)/s,-8,8); l2,d2,w2=cut(zz)
        ir=rho2.argmax(1)[:,None]; ik=kap.argmax(1)[:,None]
        cols+=[(self.mub-m)/q0,w2,v/(v+self.noise),np.log(v/self.signal[:,0]),np.log(self.sdb2/v),np.take_along_axis(rho2,ir,1)[:,0],np.take_along_axis(kap,ik,1)[:,0],np.clip(self.gap/s,-8,8)]
        f=np.stack(cols,-1); f=np.concatenate([f,np.broadcast_to(self.const[:,None],(P,Q,6))],-1)
        x=(f-self.qm)/self.qs; inside=np.abs(x)<=5; x=np.clip(x,-5,5)
        h1=x@self.W1r.T+self.b1; s1=expit(h1); a1=h1*s1; h2=a1@self.W2.T+self.b2; s2=expit(h2); a2=h2*s2; y=a2@self.W3.T+self.b3
        r=expit(f[...,0]+y[...,0]); sh=self.scale*f[...,1]+y[...,1]; m1=m+sh*s
        V0=v+self.noise; V1=v*r+self.noise; w=self.w[:,None]
        def ov(mm,vv):
            t=vv[:,None]+vv[None]; dm=mm[:,None]-mm[None]
            return np.sqrt(2*np.sqrt(vv[:,None]*vv[None])/t)*np.exp(-0.25*dm*dm/t),t,dm
        O0,t0,dm0=ov(m,V0); O1,t1,dm1=ov(m1,V1)
        A0=np.maximum((self.w[None,:,None]*O0).sum(1),1e-30); A1=np.maximum((self.T[...,None]*O1).sum(1),1e-30)
        gain=(w*(0.5*np.log(V0/V1)+np.log(A1)-np.log(A0))).sum(0)
        if not grad: return gain
        def back(wt,O,t,dm,vv,A,sign):  # d of sign * sum_p w_p log A_p
            G=(sign*w/A)[:,None]*wt*O; G=G+G.swapaxes(0,1)      # P x P x Q, symmetric in the pair
            bm=-(0.5*dm/t*G).sum(1)
            bv=0.25*G.sum(1)/vv-(0.5/t*G).sum(1)+(0.25*dm*dm/(t*t)*G).sum(1)
            return bm,bv
        bm0,bv0=back(self.w[None,:,None],O0,t0,dm0,V0,A0,-1.0); bm1,bv1=back(self.T[...,None],O1,t1,dm1,V1,A1,1.0)
        bv0=bv0+0.5*w/V0; bv1=bv1-0.5*w/V1
        bm=bm0+bm1; bv=bv0+bv1*r; br=bv1*v; bsh=bm1*s; bs=bm1*sh
        by0=br*r*(1-r)
        by=np.stack([by0,bsh],-1); bf=np.zeros_like(f); bf[...,0]+=by0; bf[...,1]+=self.scale*bsh
        bh2=(by@self.W3)*(s2*(1+h2*(1-s2))); bh1=(bh2@self.W2)*(s1*(1+h1*(1-s1))); bf+=(bh1@self.W1r)*inside/self.qs
        bF=[np.stack([bf[...,k],bf[...,k+11]],1) for k in range(11)]      # P x 2 x Q
        bF[0]=bF[0]*((st>1e-4)&(st<1-1e-4))/(stc*(1-stc))
        piT=self.pi.swapaxes(1,2)
        D=[piT@b for b in bF]
        brho=-2*rho*wid*D[0]+self.g*D[1]+2*rho*D[2]+np.sign(rho)*D[3]+4*rho*rho2*D[4]-2*rho/left*D[10]
        brho+=lam*D[1]*rho/root
        bwid=left*D[0]+D[9]; blam=-root*D[1]
        bz=(blam*(-lam*dl)+bwid*lam*(dl*dl-wid))*(np.abs(z0)<8)
        bkap=D[5]+2*kap*D[6]+0.5*D[7]/rk+D[8]/kap*(lk>-25)
        brho+=bz*(-self.g/root+z*rho/left); be=bz/root
        i0=22
        np.put_along_axis(brho,ir,np.take_along_axis(brho,ir,1)+2*np.take_along_axis(rho,ir,1)*bf[...,i0+5][:,None],1)
        np.put_along_axis(bkap,ik,np.take_along_axis(bkap,ik,1)+bf[...,i0+6][:,None],1)
        brho*=np.abs(rho)<0.9999
        bm-=be.sum(1)/s; bs-=(e*be).sum(1)/s
        bcov=brho/(s[:,None]*self.sr); bs-=(rho*brho).sum(1)/s
        bm-=bf[...,i0]/q0; bv-=0.5*(self.mub-m)/q0**3*bf[...,i0]
        bzz=bf[...,i0+1]*l2*(d2*d2-w2)*(np.abs((self.mub-m)/s)<8); bm-=bzz/s; bs-=zz*bzz/s
        bv+=bf[...,i0+2]*self.noise/(v+self.noise)**2+(bf[...,i0+3]-bf[...,i0+4])/v
        gs=self.gap/s; bs-=bf[...,i0+7]*gs/s*(np.abs(gs)<8)
        bv+=0.5*bs/s
        # to kernel columns
        bwht=-2*wht*bv[:,None]-self.whR@bcov
        bkn=self.W.swapaxes(1,2)@bwht+self.a.swapaxes(1,2)*bm[:,None]
        pull=np.concatenate([bkn*self.signal,bcov*self.signal+bkap*((val[:,n:]>1e-12)&(val[:,n:]<1))],1)*slope   # d r2/..., -slope/2 * 2(q - v)
        bV=pull.swapaxes(1,2)@self.known-pull.sum(1)[...,None]*V
        return gain,(bV*stretch).sum(0)
from torch.nn import Linear as nn_Linear
if __name__=="__main__":
    import sys,time
    import proto; from proto import *
    net=load_net(sys.argv[1])
    val=load("val/*.pt")[:14]
    for t in val:
        c=rebuild(t); Xq=t["Xq"][:40].clamp(0.01,0.99).clone().requires_grad_(); L=Learned(net,c); g=L(Xq); (gr,)=torch.autograd.grad(g.sum(),Xq)
        F=Fast(net,c); gf,grf=F.value(Xq.detach().numpy(),True)
        X0=Xq.detach().numpy(); d0=np.random.default_rng(0).normal(size=X0.shape); h=1e-5
        fd=(F.value(X0+h*d0)-F.value(X0-h*d0))/(2*h); an=(grf*d0).sum(1)
        print(t["d"],t["n"],"value diff %.1e grad diff %.1e of %.1e; fd median rel %.1e 90%% %.1e"%(np.abs(gf-g.detach().numpy()).max(),np.abs(grf-gr.numpy()).max(),np.abs(grf).max(),np.median(np.abs(fd-an)/(np.abs(an)+1e-6)),np.quantile(np.abs(fd-an)/(np.abs(an)+1e-6),.9)),flush=True)
