//! The test cluster itself: `./test cluster --kube MINOR` runs these on another Kubernetes.

mod life;
mod network;
mod pods;
mod start;
