// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package architecture_test checks what the linters of .golangci.yml cannot express: only internal/apply changes objects of a
// cluster, packages have no state, and the packages that ARCHITECTURE.md lists as pure have no client, clock, logger, metric or randomness.
// depguard and forbidigo check the order of imports, and sleeps.
package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/tombolo-mcs/tombolo/"

var (
	// product are the packages without state. Commands and tests may have some.
	product = []string{
		"./pkg/...", "./internal/...", "./controllers/...", "./coredns-plugin/...", "./manifests/...", "./cmd/kubectl-clusterset/cli/...",
		"./cmd/kubectl-clusterset/internal/...", "./cmd/kubectl-clusterset/bundle/...", "./cmd/kubectl-clusterset/picture/...",
		"./cmd/kubectl-clusterset/install/...", "./cmd/kubectl-clusterset/survey/...", "./e2e/chaos/oracle/...",
	}
	// own are the packages that change objects of a cluster.
	own = []string{module + "internal/apply", module + "cmd/kubectl-clusterset/install"}
	// clients are the modules that pure packages do not reach.
	clients = regexp.MustCompile(`^(k8s\.io/client-go|sigs\.k8s\.io/controller-runtime|github\.com/prometheus)/`)
	// impure are the packages that pure ones do not import: those that read, write, log, count, or are random.
	impure = regexp.MustCompile(`^(crypto/rand|math/rand(/v2)?|log(/slog)?|net/http|os|github\.com/go-logr/.*|k8s\.io/klog/.*|` +
		`k8s\.io/apimachinery/pkg/util/(rand|uuid)|github\.com/tombolo-mcs/tombolo/internal/(apply|hub|retain|rewind))$`)
	// clocks are the functions that say what time it is, or wait.
	clocks = regexp.MustCompile(`^(time\.(Now|Since|Until|After|AfterFunc|NewTimer|NewTicker|Tick)|k8s\.io/apimachinery/pkg/apis/meta/v1\.Now(Micro)?)$`)
	// bullets are the packages that a list of ARCHITECTURE.md describes.
	bullets = regexp.MustCompile("(?:^- |\\. )`((?:pkg|internal|e2e)/[a-z/]+)`:")
	// writers declare the methods that change objects of a cluster; Post, Put and Verb are those of a REST client.
	writers = regexp.MustCompile(`^(sigs\.k8s\.io/controller-runtime/pkg/client|k8s\.io/client-go/(kubernetes|dynamic|metadata|gentype|rest)|sigs\.k8s\.io/mcs-api/pkg/client)(/|$)`)
	// reviews are answered and not stored.
	reviews = regexp.MustCompile(`^k8s\.io/client-go/kubernetes/typed/(authentication|authorization)/`)
	writes  = regexp.MustCompile(`^(Create|Update|Patch|Delete|DeleteAllOf|DeleteCollection|Apply|UpdateStatus|ApplyStatus|Post|Put|Verb)$`)
	helpers = regexp.MustCompile(`^sigs\.k8s\.io/controller-runtime/pkg/controller/controllerutil\.CreateOr(Update|Patch)$`)
)

func TestRepository(t *testing.T) {
	t.Parallel()
	for _, problem := range check(t, nil, product...) {
		t.Error(problem)
	}
}

// TestRules: each rule finds what breaks it in a file that is added to a package.
func TestRules(t *testing.T) {
	t.Parallel()
	const imports = `package imports
import (
	"context"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)
type creator interface { Create(obj client.Object, opts ...client.CreateOption) error }
type embedded struct{ client.Client }
func bad(ctx context.Context, c client.Client, own creator, e embedded, set kubernetes.Interface, obj client.Object) {
	_ = c.Get(ctx, client.ObjectKey{}, obj)
	_ = c.Create(ctx, obj)
	_ = c.Status().Update(ctx, obj)
	_ = own.Create(obj)
	_ = e.Delete(ctx, obj)
	_ = set.CoreV1().Pods("").DeleteCollection
	_ = set.AuthenticationV1().TokenReviews().Create
	_, _ = controllerutil.CreateOrUpdate(ctx, c, obj, nil)
}`
	const state = `package plan
var count, table, list, at = 0, map[string]int{}, []int{}, struct{ x *int }{}
func bad() {
	count++
	table["a"] = 1
	delete(table, "a")
	copy(list[1:], list)
	*at.x = 1
	count := 1
	_, _ = count, table["a"]
}`
	for file, test := range map[string]struct {
		source string
		want   []string
	}{
		"controllers/imports/bad.go": {imports, []string{
			"12: Create: only internal/apply changes a cluster", "13: Update: only internal/apply changes a cluster",
			"14: Create: only internal/apply changes a cluster", "15: Delete: only internal/apply changes a cluster",
			"16: DeleteCollection: only internal/apply changes a cluster", "18: CreateOrUpdate: only internal/apply changes a cluster",
		}},
		"internal/plan/bad.go": {state, []string{
			"4: count is a package variable: pass state in, or hold it in a value", "5: table is a package variable: pass state in, or hold it in a value",
			"6: table is a package variable: pass state in, or hold it in a value", "7: list is a package variable: pass state in, or hold it in a value",
			"8: at is a package variable: pass state in, or hold it in a value",
		}},
		"internal/merge/bad.go": {"package merge\nimport _ \"github.com/tombolo-mcs/tombolo/internal/apply\"\nimport \"time\"\nfunc bad() { _ = time.Now() }\n", []string{
			"1: pure, but imports github.com/tombolo-mcs/tombolo/internal/apply", "1: pure, but reaches github.com/prometheus", "1: pure, but reaches k8s.io/client-go", "1: pure, but reaches sigs.k8s.io/controller-runtime",
			"4: pure, but uses time.Now: take the time as a value",
		}},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			path, err := filepath.Abs("../../" + file)
			must(t, err)
			var got []string
			for _, problem := range check(t, map[string][]byte{path: []byte(test.source)}, "./"+filepath.Dir(file)) {
				got = append(got, strings.TrimPrefix(problem, path+":"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// check returns the places where packages break a rule. The overlay holds files that are not on the disk.
func check(t *testing.T, overlay map[string][]byte, patterns ...string) []string {
	t.Helper()
	const graph = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps
	var found []string
	pure := purePackages(t)
	for _, p := range load(t, graph, overlay, patterns) {
		if isPure(pure, p) {
			for path := range p.Imports {
				if impure.MatchString(path) {
					found = append(found, fmt.Sprintf("%s:1: pure, but imports %s", p.GoFiles[0], path))
				}
			}
			packages.Visit([]*packages.Package{p}, nil, func(dep *packages.Package) {
				if client := clients.FindString(dep.PkgPath); client != "" {
					found = append(found, fmt.Sprintf("%s:1: pure, but reaches %s", p.GoFiles[0], strings.TrimSuffix(client, "/")))
				}
			})
		}
	}
	const typed = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedExportFile
	for _, p := range load(t, typed, overlay, patterns) {
		report := func(at ast.Node, format, name string) {
			where := p.Fset.Position(at.Pos())
			found = append(found, fmt.Sprintf("%s:%d: "+format, where.Filename, where.Line, name))
		}
		for ident, object := range p.TypesInfo.Uses {
			if fn, ok := object.(*types.Func); ok && fn.Pkg() != nil && !slices.Contains(own, p.PkgPath) && writesCluster(fn) {
				report(ident, "%s: only internal/apply changes a cluster", fn.Name())
			}
			if fn, ok := object.(*types.Func); ok && isPure(pure, p) && clocks.MatchString(fn.FullName()) {
				report(ident, "pure, but uses %s: take the time as a value", fn.FullName())
			}
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				for _, changed := range assigned(p.TypesInfo, n) {
					if v := packageVar(p.TypesInfo, changed); v != nil && !ast.IsGenerated(file) {
						report(changed, "%s is a package variable: pass state in, or hold it in a value", v.Name())
					}
				}
				return true
			})
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// purePackages returns the packages that ARCHITECTURE.md lists as pure.
func purePackages(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	must(t, err)
	_, list, _ := strings.Cut(string(text), "\nPure packages ")
	list, _, _ = strings.Cut(list, "\nPackages with connections")
	var result []string
	for line := range strings.Lines(list) {
		for _, found := range bullets.FindAllStringSubmatch(line, -1) {
			if info, err := os.Stat("../../" + found[1]); err != nil || !info.IsDir() {
				t.Errorf("ARCHITECTURE.md: there is no package %s", found[1])
			}
			result = append(result, found[1])
		}
	}
	if len(result) < 10 {
		t.Fatalf("ARCHITECTURE.md lists as pure: %v", result)
	}
	return result
}

func isPure(pure []string, p *packages.Package) bool {
	return slices.Contains(pure, strings.TrimPrefix(p.PkgPath, module))
}

func load(t *testing.T, mode packages.LoadMode, overlay map[string][]byte, patterns []string) []*packages.Package {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Mode: mode, Dir: "../..", Overlay: overlay}, patterns...)
	if err != nil || len(loaded) == 0 {
		t.Fatalf("load %v: %d packages, %v", patterns, len(loaded), err)
	}
	for _, p := range loaded {
		for _, problem := range p.Errors { // nothing is known of a package that does not compile
			t.Fatal(problem)
		}
	}
	return loaded
}

// writesCluster is whether a function changes objects of a cluster. It knows a consumer's own interface by its parameters.
func writesCluster(fn *types.Func) bool {
	if fn.Signature().Recv() == nil {
		return helpers.MatchString(fn.FullName())
	}
	if !writes.MatchString(fn.Name()) || slices.Contains(own, fn.Pkg().Path()) {
		return false
	}
	if writers.MatchString(fn.Pkg().Path()) {
		return !reviews.MatchString(fn.Pkg().Path())
	}
	for param := range fn.Signature().Params().Variables() {
		t := param.Type()
		if slice, ok := t.(*types.Slice); ok {
			t = slice.Elem()
		}
		named, ok := types.Unalias(t).(*types.Named)
		if ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "sigs.k8s.io/controller-runtime/pkg/client" {
			return true
		}
	}
	return false
}

// assigned returns what a node changes.
func assigned(info *types.Info, n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		fn, _ := n.Fun.(*ast.Ident)
		if fn != nil && slices.Contains([]string{"delete", "clear", "copy"}, fn.Name) && info.Uses[fn] == types.Universe.Lookup(fn.Name) {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVar returns the package variable that a change of an expression changes; nil if it is another variable.
func packageVar(info *types.Info, expr ast.Expr) *types.Var {
	switch e := expr.(type) {
	case *ast.Ident:
		if v, ok := info.Uses[e].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return v
		}
	case *ast.SelectorExpr:
		if info.Selections[e] == nil {
			return packageVar(info, e.Sel)
		}
		return packageVar(info, e.X)
	case *ast.IndexExpr:
		return packageVar(info, e.X)
	case *ast.SliceExpr:
		return packageVar(info, e.X)
	case *ast.StarExpr:
		return packageVar(info, e.X)
	case *ast.ParenExpr:
		return packageVar(info, e.X)
	}
	return nil
}

// TestWalk: the functions of the data flow in ARCHITECTURE.md exist, and are fewer than a dozen.
func TestWalk(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	must(t, err)
	_, walk, _ := strings.Cut(string(text), "## Data flow\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| [AB] \\| `([a-z]+)\\.(?:([A-Za-z]+)\\.)?([A-Za-z]+)` \\|").FindAllStringSubmatch(walk, -1)
	if len(rows) < 8 || len(rows) >= 12 {
		t.Errorf("the data flow names %d functions", len(rows))
	}
	for _, row := range rows {
		pkg, receiver, function := row[1], row[2], row[3]
		declaration := `(?m)^func ` + function + `[\[(]`
		if receiver != "" {
			declaration = `(?m)^func \(\w+ \*?` + receiver + `\) ` + function + `\(`
		}
		if !declares(t, pkg, root, regexp.MustCompile(declaration)) {
			t.Errorf("there is no %s", strings.Trim(row[0], "| AB"))
		}
	}
}

// declares reports whether a package of this name has a line that matches.
func declares(t *testing.T, pkg, root string, line *regexp.Regexp) bool {
	t.Helper()
	for _, folder := range []string{"internal", "controllers"} {
		files, err := filepath.Glob(filepath.Join(root, folder, pkg, "*.go"))
		must(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			must(t, err)
			if line.Match(source) {
				return true
			}
		}
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
