// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// checkProperties returns an error if the cluster cannot have a property of the flags. An empty value removes a property.
func (o *joinOptions) checkProperties() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(o.memberProperties)) {
		if value := o.memberProperties[name]; value != "" {
			problems = append(problems, record.CheckProperty(name, value))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("--property: %w", err)
	}
	return nil
}

// propertiesOf returns the desired properties of the Member: those before, changed by the flags.
func (j *joinCommand) propertiesOf() map[string]hubv1alpha1.PropertyValue {
	result := map[string]hubv1alpha1.PropertyValue{}
	if j.admitted != nil {
		maps.Copy(result, j.admitted.Spec.Properties)
	}
	for name, value := range j.memberProperties {
		if result[name] = hubv1alpha1.PropertyValue(value); value == "" {
			delete(result, name)
		}
	}
	return result
}
