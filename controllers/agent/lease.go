// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// leaseTimeout is the deadline of a request for the Lease: half of the time for which a leader tries to renew it.
const leaseTimeout = 5 * time.Second

// newHolder returns this process as a holder of the Lease.
func newHolder(pod Pod) (clusterset.LeaseHolder, error) {
	nonce := make([]byte, 8)
	if _, err := rand.Read(nonce); err != nil {
		return clusterset.LeaseHolder{}, fmt.Errorf("make the nonce of this process: %w", err)
	}
	holder := clusterset.LeaseHolder{Pod: pod.Name, PodUID: pod.UID, Nonce: hex.EncodeToString(nonce)}
	if holder.Pod != "" {
		return holder, nil
	}
	var err error
	if holder.Pod, err = os.Hostname(); err != nil {
		return clusterset.LeaseHolder{}, fmt.Errorf("get the name of this host: %w", err)
	}
	return holder, nil
}

// lease is the Lease by which replicas choose a leader. A holder that is proven to have ended counts as one that has released it, so that
// its successor does not wait until the Lease expires.
type lease struct {
	*resourcelock.LeaseLock
	own    clusterset.LeaseHolder
	pods   corev1client.PodInterface
	events record.EventBroadcaster

	mu sync.Mutex
	// holder is the holderIdentity at the last read, and ended the nonce of the process that has released the Lease last.
	holder, ended string
	// problem is the last error about the holder's Pod, so that it is logged once.
	problem string
}

// newLease returns the Lease of agents in a namespace.
func newLease(config *rest.Config, namespace string, own clusterset.LeaseHolder) (*lease, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = leaseTimeout
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the client of the leader election: %w", err)
	}
	coordination, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the client of the leader election: %w", err)
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.Events("")})
	return &lease{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:    coordination,
			LockConfig: resourcelock.ResourceLockConfig{
				Identity:      own.String(),
				EventRecorder: events.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: own.Pod}),
			},
			Labels: map[string]string{clusterset.LabelNonce: own.Nonce},
		},
		own: own, pods: core.Pods(namespace), events: events,
	}, nil
}

// stop ends the sending of Events.
func (l *lease) stop() { l.events.Shutdown() }

// Get returns the record of the Lease. It has no holder if the holder has released the Lease or has ended.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	result, raw, err := l.LeaseLock.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	ended := ""
	switch holder := result.HolderIdentity; holder {
	case l.Identity():
	case "":
		if ended, err = l.releasedBy(ctx); err != nil {
			return nil, nil, err
		}
	default:
		if process := clusterset.ParseLeaseHolder(holder); l.hasEnded(ctx, process) {
			log.FromContext(ctx).Info("the holder of the lease has ended; taking the lease over", "holder", holder)
			result.HolderIdentity = "" // in a copy of the cluster, the holder may run in the original
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.ended = result.HolderIdentity, cmp.Or(ended, l.ended)
	return result, raw, nil
}

// Update renews, acquires or releases the Lease. A process that has lost the Lease does not release it.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	holder := l.holder
	l.mu.Unlock()
	if record.HolderIdentity == "" && holder != l.Identity() {
		return errNotHeld
	}
	return l.LeaseLock.Update(ctx, record)
}

var errNotHeld = errors.New("this process does not hold the lease any more")

// releasedBy returns the nonce of the process that has released the Lease; empty if it is not known.
func (l *lease) releasedBy(ctx context.Context) (string, error) {
	object, err := l.Client.Leases(l.LeaseMeta.Namespace).Get(ctx, l.LeaseMeta.Name, metav1.GetOptions{})
	if err != nil || object.Spec.HolderIdentity != nil && *object.Spec.HolderIdentity != "" {
		return "", err
	}
	return object.Labels[clusterset.LabelNonce], nil
}

// hasEnded reports whether a process is proven to have ended. It reads the Pod only if it has to.
func (l *lease) hasEnded(ctx context.Context, holder clusterset.LeaseHolder) bool {
	if isPredecessor(holder, l.own) {
		return true
	}
	if holder.PodUID == "" {
		return false
	}
	pod, err := l.pods.Get(ctx, holder.Pod, metav1.GetOptions{})
	if err != nil {
		l.report(ctx, holder, err)
		return false
	}
	return string(pod.UID) == holder.PodUID && isTerminated(pod)
}

// report logs why the Pod of the holder cannot be read, once as long as that stays the same. Then the Lease expires.
func (l *lease) report(ctx context.Context, holder clusterset.LeaseHolder, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := err.Error(); text != l.problem && !apierrors.IsNotFound(err) {
		l.problem = text
		log.FromContext(ctx).Error(err, "cannot read the pod of the holder of the lease; waiting until the lease expires", "pod", holder.Pod)
	}
}

// isPredecessor reports whether a process was one of the same Pod, whose container has been restarted. A Pod has one process of the agent.
func isPredecessor(holder, own clusterset.LeaseHolder) bool {
	return holder.PodUID != "" && holder.PodUID == own.PodUID && holder.Nonce != own.Nonce
}

// isTerminated reports whether the kubelet says that all containers of a Pod have ended, for good. The phase alone does not prove it: the
// control plane sets it for Pods of a node that it does not reach. Neither does a Pod that does not exist.
func isTerminated(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed || len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
}

// Ended reports whether the process with a nonce is known to have ended, because it has released the Lease.
func (l *lease) Ended(nonce string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return nonce != "" && nonce == l.ended
}

// Held reads the Lease, and reports whether this process holds it. A process that was suspended may have lost it without knowing.
func (l *lease) Held(ctx context.Context) (bool, error) {
	object, err := l.Client.Leases(l.LeaseMeta.Namespace).Get(ctx, l.LeaseMeta.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get the lease of the agent: %w", err)
	}
	return object.Spec.HolderIdentity != nil && *object.Spec.HolderIdentity == l.Identity(), nil
}
