// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// storedStage is a Stage as the Secret of the agent contains it.
type storedStage struct {
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Published   time.Time `json:"published,omitzero"`
}

// EncodeRotation returns the authorities with their keys and times, as JSON.
func EncodeRotation(r Rotation) ([]byte, error) {
	var stages []storedStage
	for _, stage := range r {
		certificate, key, err := stage.Encode()
		if err != nil {
			return nil, err
		}
		stages = append(stages, storedStage{string(certificate), string(key), stage.Published})
	}
	return json.Marshal(stages)
}

// DecodeRotation returns the rotation that EncodeRotation has encoded, or why the text is another.
func DecodeRotation(text []byte) (Rotation, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var stages []storedStage
	if err := decoder.Decode(&stages); err != nil {
		return nil, fmt.Errorf("the authorities are not readable: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the authorities are followed by other text")
	}
	var result Rotation
	for _, stage := range stages {
		authority, err := DecodeAuthority([]byte(stage.Certificate), []byte(stage.Key))
		if err != nil {
			return nil, err
		}
		result = append(result, Stage{authority, stage.Published})
	}
	if _, err := DecodeBundle(EncodeBundle(result.Authorities())); err != nil { // none, too many, or one twice
		return nil, err
	}
	return result, nil
}
