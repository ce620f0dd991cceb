module example.com/bad

go 1.26.0

require (
	k8s.io/api v0.0.0
	k8s.io/apimachinery v0.0.0
	k8s.io/client-go v0.0.0
	sigs.k8s.io/controller-runtime v0.0.0
)

replace (
	k8s.io/api => ../fake/api
	k8s.io/apimachinery => ../fake/apimachinery
	k8s.io/client-go => ../fake/client-go
	sigs.k8s.io/controller-runtime => ../fake/controller-runtime
)
