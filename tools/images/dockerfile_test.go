// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

var productRoot = filepath.Join("..", "..")

// The Dockerfile in the tree is the one that the recipe makes.
func TestDockerfileIsFresh(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := run(t.Context(), []string{"dockerfile"}, &want, project{images: images()}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(productRoot, "Dockerfile")); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the Dockerfile is stale: run make generate\n%s", got)
	}
}

// stages returns what BuildKit's own parser reads from a Dockerfile, and what its linter says.
func stages(t *testing.T, text []byte) (all []instructions.Stage, global []instructions.ArgCommand) {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Error(w.Short)
	}
	warn := func(name, _, _, message string, _ []parser.Range) { t.Errorf("%s: %s", name, message) }
	all, global, err = instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	if err != nil {
		t.Fatal(err)
	}
	return all, global
}

// built is what docker build --target=STAGE would make.
type built struct {
	config v1.ImageConfig
	base   string
	// run is the command that makes the files.
	run string
	// from and to are the copied folder and where it is copied to.
	stage, from, to string
}

// evaluate carries out the instructions of a stage, with the variables that the builder sets, as far as images need them. It changes the stages.
func evaluate(t *testing.T, all []instructions.Stage, name string, env []string) built {
	t.Helper()
	at := slices.IndexFunc(all, func(s instructions.Stage) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no stage %s", name)
	}
	b := built{base: all[at].BaseName, config: v1.ImageConfig{ExposedPorts: map[string]struct{}{}, Labels: map[string]string{}}}
	var known []string
	lex := shell.NewLex('\\')
	expand := func(word string) (string, error) {
		value, unset, err := lex.ProcessWord(word, shell.EnvsFromSlice(known))
		for name := range unset {
			t.Errorf("stage %s: %s is not known there", b.base, name)
		}
		return value, err
	}
	for _, command := range all[at].Commands {
		if c, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			if err := c.Expand(expand); err != nil {
				t.Fatal(err)
			}
		}
		switch c := command.(type) {
		case *instructions.ArgCommand:
			for _, arg := range c.Args {
				known = append(known, valueOf(t, env, arg.Key))
			}
		case *instructions.LabelCommand:
			for _, l := range c.Labels {
				b.config.Labels[l.Key] = l.Value
			}
		case *instructions.ExposeCommand:
			for _, port := range c.Ports {
				b.config.ExposedPorts[port] = struct{}{}
			}
		case *instructions.UserCommand:
			b.config.User = c.User
		case *instructions.WorkdirCommand:
			b.config.WorkingDir = c.Path
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Errorf("stage %s: the entrypoint needs a shell", name)
			}
			b.config.Entrypoint = c.CmdLine
		case *instructions.CopyCommand:
			b.stage, b.from, b.to = c.From, strings.Join(c.SourcePaths, " "), c.DestPath
		case *instructions.RunCommand:
			b.run = strings.Join(c.CmdLine, " ")
		default:
			t.Errorf("stage %s: %s is not compared with the archives", name, command.Name())
		}
	}
	return b
}

func valueOf(t *testing.T, env []string, name string) string {
	t.Helper()
	at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	if at < 0 {
		t.Errorf("nobody sets %s", name)
		return name + "="
	}
	return env[at]
}

// Both ways of building give images of the same configuration.
func TestDockerfileAgreesWithArchives(t *testing.T) {
	t.Parallel()
	r := someRelease()
	for _, i := range images() {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			all, _ := stages(t, read(t, filepath.Join(productRoot, "Dockerfile")))
			got := evaluate(t, all, i.stage, []string{"VERSION=" + r.version, "REVISION=" + r.revision})
			if want := configOf(i, r, platforms()[0], "").Config; !reflect.DeepEqual(got.config, want) {
				t.Errorf("the Dockerfile says %+v\nthe archive says   %+v", got.config, want)
			}
			if got.base != "scratch" || got.stage != i.stage+"-files" || got.from != "/image" || got.to != "/" || got.run != "" {
				t.Errorf("the image is not just the files of its own stage: %+v", got)
			}
		})
	}
}

// Both ways of building give images of the same files: the Dockerfile's own command is carried out here.
func TestDockerfileMakesTheSameFiles(t *testing.T) {
	t.Parallel()
	text, err := dockerfileOf([]image{tiny()}, "1.26")
	if err != nil {
		t.Fatal(err)
	}
	_, global := stages(t, []byte(text))
	var defaults []string
	for _, arg := range global {
		for _, a := range arg.Args {
			defaults = append(defaults, a.Key+"="+a.ValueString())
		}
	}
	if want := []string{"VERSION=devel", "REVISION=unknown"}; !slices.Equal(defaults, want) {
		t.Errorf("defaults %v, want %v", defaults, want)
	}
	for _, p := range tinyPrograms(t) {
		t.Run(p.platform.arch, func(t *testing.T) {
			t.Parallel()
			all, _ := stages(t, []byte(text))
			env := []string{"TARGETOS=" + p.platform.os, "TARGETARCH=" + p.platform.arch, "VERSION=" + someRelease().version}
			words, err := shell.NewLex('\\').ProcessWords(evaluate(t, all, "small-files", nil).run, shell.EnvsFromSlice(env))
			if err != nil {
				t.Fatal(err)
			}
			tool := []string{"go", "-C", "tools/images", "run", "."}
			if len(words) < len(tool) || !slices.Equal(words[:len(tool)], tool) {
				t.Fatalf("the command is %q", words)
			}
			dir := filepath.Join(t.TempDir(), "image")
			args := slices.Concat(words[len(tool):], []string{"-root=" + root})
			at := slices.Index(args, "-out=/image")
			if at < 0 {
				t.Fatalf("the command writes elsewhere: %q", args)
			}
			args[at] = "-out=" + dir
			var log bytes.Buffer
			if err := run(t.Context(), args, &log, tinyProject("")); err != nil {
				t.Fatalf("%v\n%s", err, &log)
			}
			wantFiles(t, dir, filesOf(tiny(), p.content))
		})
	}
}

// wantFiles compares what is in dir with the files.
func wantFiles(t *testing.T, dir string, files []file) {
	t.Helper()
	want := map[string]file{}
	for _, f := range files {
		want[f.path] = f
	}
	got := map[string]file{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		path := strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir))
		got[path] = file{path, info.Mode(), read(t, name)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if have, wanted := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(have, wanted) {
		t.Fatalf("files %v, want %v", have, wanted)
	}
	for path, f := range got {
		if f.mode != want[path].mode || !bytes.Equal(f.content, want[path].content) {
			t.Errorf("%s differs: mode %s (want %s), %d bytes (want %d)", path, f.mode, want[path].mode, len(f.content), len(want[path].content))
		}
	}
}

// The stages that make files build on the machine's own platform with the Go that go.mod asks for, and the recipe's
// packages are there.
func TestDockerfileBuildStage(t *testing.T) {
	t.Parallel()
	version, err := goVersionOf(productRoot)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := stages(t, read(t, filepath.Join(productRoot, "Dockerfile")))
	if got := all[0]; got.Name != "build" || got.BaseName != "golang:"+version || got.Platform != "$BUILDPLATFORM" {
		t.Errorf("the first stage is %s of %s on %s", got.Name, got.BaseName, got.Platform)
	}
	var declared []string // and so known to the stages that are built from it
	for _, command := range all[0].Commands {
		if c, ok := command.(*instructions.ArgCommand); ok {
			declared = append(declared, c.Args[0].Key)
		}
	}
	if want := []string{"TARGETOS", "TARGETARCH", "VERSION"}; !slices.Equal(declared, want) {
		t.Errorf("the first stage asks for %v, want %v", declared, want)
	}
	for _, i := range images() {
		if at := slices.IndexFunc(all, func(s instructions.Stage) bool { return s.Name == i.stage+"-files" }); at < 0 || all[at].BaseName != "build" {
			t.Errorf("there is no stage %s-files built from the first", i.stage)
		}
	}
	if !bytes.Contains(read(t, filepath.Join(productRoot, "go.mod")), []byte("\ngo "+version+".")) {
		t.Errorf("go.mod does not ask for Go %s", version)
	}
	for _, i := range images() {
		if info, err := os.Stat(filepath.Join(productRoot, i.pkg)); err != nil || !info.IsDir() {
			t.Errorf("%s: there is no package %s", i.name, i.pkg)
		}
	}
}

// The manifests run the images as their user, on the ports that the recipe names.
func TestManifestsAgree(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`(?:[pP]ort: |:)(\d{4,5})\b`)
	uid, gid, _ := strings.Cut(user, ":")
	for name, files := range map[string][]string{
		"tombolo-agent": {"agent/workload/deployment.yaml"},
		"tombolo-dns":   {"dns/plugin/deployment.yaml", "dns/plugin/Corefile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, err := find(images(), name)
			if err != nil {
				t.Fatal(err)
			}
			var text string
			for _, file := range files {
				text += string(read(t, filepath.Join(productRoot, "manifests", filepath.FromSlash(file))))
			}
			for _, want := range []string{"image: " + name + "\n", "runAsUser: " + uid + "\n", "runAsGroup: " + gid + "\n", "runAsNonRoot: true\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("%v lack %q", files, want)
				}
			}
			var got, want []string
			for _, found := range number.FindAllStringSubmatch(text, -1) {
				got = append(got, found[1])
			}
			for _, port := range i.ports {
				want = append(want, strconv.Itoa(port.number))
			}
			if got, want := sorted(got), sorted(want); !slices.Equal(got, want) {
				t.Errorf("%v name the ports %v, the recipe %v", files, got, want)
			}
		})
	}
}

// sorted returns the words in order, each once.
func sorted(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }
