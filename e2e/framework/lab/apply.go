// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// servedTimeout is more than an API server needs to serve a new kind, unless something is wrong with it.
const servedTimeout = 2 * time.Minute

// fieldOwner is the field manager of what Apply writes.
const fieldOwner = client.FieldOwner("lab")

// Client returns a client with the rights of an administrator and no cache. A nil scheme means the built-in kinds.
func (c *Cluster) Client(scheme *runtime.Scheme) (client.WithWatch, error) {
	if scheme == nil {
		scheme = clientscheme.Scheme
	}
	cl, err := client.NewWithWatch(c.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client of cluster %s: %w", c.Name, err)
	}
	return cl, nil
}

// Apply applies (server-side) the objects of YAML or JSON manifests in their order. After each CustomResourceDefinition
// it waits until all its versions are served, so its objects may follow it. Errors name the object.
func (c *Cluster) Apply(ctx context.Context, manifests ...[]byte) error {
	objects, err := decode(manifests)
	if err != nil {
		return fmt.Errorf("applying to cluster %s: %w", c.Name, err)
	}
	cl, err := c.Client(nil)
	if err != nil {
		return err
	}
	for _, u := range objects {
		if err := apply(ctx, cl, u); err != nil {
			return fmt.Errorf("applying to cluster %s: %s %s: %w", c.Name, u.GetKind(), client.ObjectKeyFromObject(u), err)
		}
	}
	return nil
}

// InstallCRDs is Apply for manifests that must hold CustomResourceDefinitions only.
func (c *Cluster) InstallCRDs(ctx context.Context, manifests ...[]byte) error {
	objects, err := decode(manifests)
	if err != nil {
		return fmt.Errorf("installing CRDs in cluster %s: %w", c.Name, err)
	}
	for _, u := range objects {
		if !isCRD(u) {
			return fmt.Errorf("installing CRDs in cluster %s: %s %s is none", c.Name, u.GetKind(), u.GetName())
		}
	}
	return c.Apply(ctx, manifests...)
}

// decode returns the objects of manifests, each of which may hold several documents.
func decode(manifests [][]byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, m := range manifests {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(m)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("reading a manifest: %w", err)
			}
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &u.Object); err != nil {
				return nil, fmt.Errorf("reading a manifest: %w", err)
			}
			if len(u.Object) > 0 { // comments alone make an empty document
				objects = append(objects, u)
			}
		}
	}
	return objects, nil
}

func apply(ctx context.Context, cl client.Client, u *unstructured.Unstructured) error {
	if err := write(ctx, cl, u); err != nil || !isCRD(u) {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return err
	}
	return awaitServed(ctx, cl, crd)
}

// write applies one object. Into a namespace that was made anew just now it waits until the API server knows that it was.
func write(ctx context.Context, cl client.Client, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		last = cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), fieldOwner, client.ForceOwnership)
		return !apierrors.HasStatusCause(last, corev1.NamespaceTerminatingCause), nil
	})
	if last != nil {
		return last
	}
	return err
}

func isCRD(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

// awaitServed returns when every served version of a CRD appears in discovery and can be listed, else why not.
func awaitServed(ctx context.Context, cl client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind + "List"})
		err := Await(ctx, readyInterval, servedTimeout, func(ctx context.Context) error { return cl.List(ctx, list, client.Limit(1)) })
		if err != nil {
			return fmt.Errorf("version %s is not served: %w", version.Name, err)
		}
	}
	return nil
}
