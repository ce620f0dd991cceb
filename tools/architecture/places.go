// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package architecture checks the shape of the module: which package may import which, what the pure packages may
// use, who may write to a cluster. Its test runs the rules over the repository; fixtures below testdata prove that each
// rule can fail.
package architecture

import "strings"

// group is a set of packages with the same rights.
type group string

const (
	nouns       group = "nouns"
	api         group = "api"
	pure        group = "pure"
	reading     group = "reading"
	shell       group = "shell"
	writer      group = "writer"
	shared      group = "shared"
	controllers group = "controllers"
	agent       group = "agent"
	survey      group = "survey"
	cli         group = "cli"
	dns         group = "dns"
	manifests   group = "manifests"
	cmd         group = "cmd"
	e2e         group = "e2e"
	oracle      group = "oracle"
	tools       group = "tools"
)

// places says which group a folder, with all below it, belongs to. A package outside of them is a violation: whoever
// adds one decides its place here.
var places = map[string]group{
	"pkg/clusterset": nouns,
	"pkg/api":        api,
	"pkg/export":     pure,
	"pkg/merge":      pure,
	"pkg/render":     pure,
	"pkg/conditions": pure,
	"pkg/plan":       pure,
	"pkg/liveness":   pure,
	"pkg/record":     pure,
	"pkg/corefile":   pure,
	"pkg/rewind":     reading,
	"pkg/hub":        shell,
	"pkg/apply":      writer,
	"controllers":    controllers,
	// What several controllers use. A controller does not import another.
	"controllers/sources":     shared,
	"controllers/queue":       shared,
	"controllers/caches":      shared,
	"controllers/publication": shared,
	"controllers/agent":       agent,
	// What an administrator's command writes.
	"cmd/kubectl-clusterset/install": writer,
	"cmd/kubectl-clusterset/survey":  survey,
	"cmd/kubectl-clusterset/cli":     cli,
	"coredns-plugin":                 dns,
	"manifests":                      manifests,
	"cmd":                            cmd,
	"e2e":                            e2e,
	// What the product is compared with shares no code with it, only the hub's types.
	"e2e/chaos/oracle": oracle,
	"tools":            tools,
}

// mayImport is the direction of imports: clusterset, api <- pure packages <- hub, apply <- shared <- controllers <- agent <- cmd.
var mayImport = map[group][]group{
	nouns:       {nouns},
	api:         {nouns, api},
	pure:        {nouns, api, pure},
	reading:     {},
	shell:       {nouns, api, pure, reading, shell, writer},
	writer:      {nouns, api, pure, writer},
	shared:      {nouns, api, pure, shell, writer, shared},
	controllers: {nouns, api, pure, reading, shell, writer, shared},
	agent:       {nouns, api, pure, reading, shell, writer, shared, controllers, agent, manifests},
	survey:      {nouns, api, pure, shell, writer, shared, controllers, agent, survey, manifests},
	cli:         {nouns, api, pure, shell, writer, survey, cli, manifests},
	dns:         {nouns, pure, reading, dns},
	manifests:   {nouns, api, manifests},
	cmd:         {nouns, api, pure, shell, writer, shared, controllers, agent, survey, cli, dns, manifests, cmd},
	e2e:         {nouns, api, pure, shell, writer, shared, controllers, agent, survey, cli, dns, manifests, cmd, e2e, oracle},
	oracle:      {api, oracle},
	tools:       {tools},
}

// mayWrite are the groups that may change objects of a cluster. Tests may as well: they are not looked at.
var mayWrite = map[group]bool{writer: true, cmd: true, e2e: true}

// mustBePure are the groups whose packages are functions of values.
var mustBePure = map[group]bool{nouns: true, pure: true, oracle: true}

// apiImports are the modules that the hub's types may use.
var apiImports = []string{"k8s.io/apimachinery", "k8s.io/api", "sigs.k8s.io/mcs-api/pkg/apis"}

// impureImports are what a pure package must not import.
var impureImports = []string{
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr", "k8s.io/klog", "log",
	"github.com/prometheus", "math/rand", "crypto/rand", "k8s.io/apimachinery/pkg/util/rand",
	"k8s.io/apimachinery/pkg/util/uuid", "os", "net/http",
}

// impureDeps are what a pure package must not even reach through others. The list is shorter than impureImports:
// apimachinery itself reaches os, net/http and logr.
var impureDeps = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/prometheus"}

// impureFuncs read the clock or wait.
var impureFuncs = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

// clientPackages declare the methods that change objects of a cluster.
var clientPackages = []string{
	"sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic",
	"k8s.io/client-go/metadata", "k8s.io/client-go/gentype", "k8s.io/client-go/rest", "sigs.k8s.io/mcs-api/pkg/client",
}

// writeMethods change an object of a cluster; Post, Put and Verb are those of a REST client.
var writeMethods = []string{
	"Create", "Update", "Patch", "Delete", "DeleteAllOf", "DeleteCollection", "Apply", "UpdateStatus", "ApplyStatus",
	"Post", "Put", "Verb",
}

// writeFuncs are functions of controllerutil that end in a write.
var writeFuncs = []string{"CreateOrUpdate", "CreateOrPatch"}

// controllerutil is the package of writeFuncs.
const controllerutil = "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

// groupOf returns the group of a package path below the module, false if it has none.
func groupOf(rel string) (group, bool) {
	for dir := rel; dir != ""; dir = parent(dir) {
		if g, ok := places[dir]; ok {
			return g, true
		}
	}
	return "", false
}

func parent(dir string) string {
	i := strings.LastIndexByte(dir, '/')
	return dir[:max(i, 0)]
}

// within reports whether a path is one of the prefixes or lies below it.
func within(path string, prefixes []string) bool {
	for _, p := range prefixes {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}
