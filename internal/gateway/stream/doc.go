// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream decides what the two sides of a stream do (G6, G7): (state, event) -> (state, actions). It has no socket, no clock, no lock
// and no goroutine. Package forward gives it the events, and does the actions. TestDocument compares it with the tables of
// docs/gateway-protocol.md.
//
//	the importing side, that of the client            the exporting side, that of the backend
//
//	        Begin: Connect                                     OPEN arrives
//	              |                                                 |
//	              v       Unlinked, Late,                           v
//	  +------> opening <------ lost without a byte               opening ---- Denied: SendRefused ----+
//	  |           |  Linked: SendOpen   sent: Connect               |                                 |
//	  |           |                                                 | Connected: SendOpened           |
//	  |           | LinkOpened                                      v                                 |
//	  |           v                                                open                               |
//	  |         open   LocalData: SendData  <------------------>   open   LinkData: WriteLocal        |
//	  |           |    LocalEnd: SendFin                            |     LinkFin: ShutLocal          |
//	  |           |                                                 | both: SendDone                  |
//	  |           | LinkDone: FreeLink                              v                                 |
//	  |           +----------------> ended <------------------    ended <-----------------------------+
//	  |                                ^
//	  +- REFUSED that may be retried   |
//	                                   +-- from each state: LocalFailed: SendReset; LinkReset, LinkLost, Denied: AbortLocal
//
// Backpressure is part of the state: while one socket does not take more, ReadsLink or ReadsLocal says that the other is not read.
package stream
