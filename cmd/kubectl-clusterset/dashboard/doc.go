// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves a web page on the loopback interface that shows a clusterset live. The data flow:
//
//	Server.Publish   takes an observation of the clusterset
//	pageOf           decides what the page shows: a row for each service, with a letter for each member
//	feed             compares it with what was shown before, and encodes the difference once for all browsers
//	/api/events      sends it to each of them (server-sent events)
//	assets           draw it
//
// The page has no data of its own and no rights: the command reads with those of its user. Names and messages are those of other
// clusters, so the page never interprets them as HTML.
package dashboard
