package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// ofOperator are the kinds of the Prometheus operator. No module that can be downloaded has their
// schemas, so they are decoded into its Go types.
var ofOperator = map[string]struct{}{"PodMonitor": {}, "PrometheusRule": {}}

// keda is the release whose schema of a ScaledObject is used.
const keda = "github.com/kedacore/keda/v2@v2.21.0"

// moduleFolder downloads a module that is read and not imported, because its own dependencies would
// become those of the tests.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	download.Dir = t.TempDir() // outside of the module of the tests, whose go.sum stays as it is
	out, err := download.CombinedOutput()
	var found struct{ Dir string }
	if err != nil || json.Unmarshal(out, &found) != nil {
		t.Fatalf("download %s: %v\n%s", module, err, out)
	}
	return found.Dir
}

// conformer is kubeconform with the schemas of the Kubernetes release whose types the other tests
// decode into.
func conformer(t *testing.T) validator.Validator {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}",
		"k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	kubernetes := moduleFolder(t,
		"k8s.io/kubernetes@v1"+strings.TrimPrefix(strings.TrimSpace(string(version)), "v0"))
	folder := t.TempDir()
	for _, group := range []string{
		"api__v1", "apis__apps__v1", "apis__batch__v1", "apis__networking.k8s.io__v1",
		"apis__policy__v1",
	} {
		text, err := os.ReadFile(filepath.Join(kubernetes, "api/openapi-spec/v3",
			group+"_openapi.json"))
		if err != nil {
			t.Fatal(err)
		}
		writeSchemas(t, folder, text)
	}
	writeCustomSchema(t, folder, filepath.Join(moduleFolder(t, keda),
		"config/crd/bases/keda.sh_scaledobjects.yaml"))
	v, err := validator.New([]string{folder + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"},
		validator.Opts{Strict: true, SkipKinds: ofOperator})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// writeSchemas writes a JSON schema for each kind of an OpenAPI description, under the name by
// which kubeconform looks for it.
func writeSchemas(t *testing.T, folder string, openapi []byte) {
	t.Helper()
	var description struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openapi, &description); err != nil {
		t.Fatal(err)
	}
	for _, schema := range description.Components.Schemas {
		if _, open := schema["additionalProperties"]; schema["properties"] != nil && !open {
			schema["additionalProperties"] = false
		}
	}
	for name, schema := range description.Components.Schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		kind := kinds[0].(map[string]any)
		file := []string{strings.ToLower(kind["kind"].(string))}
		if group, _, _ := strings.Cut(kind["group"].(string), "."); group != "" {
			file = append(file, group)
		}
		file = append(file, kind["version"].(string)+".json")
		text, err := json.Marshal(map[string]any{
			"$ref": "#/components/schemas/" + name, "components": description.Components,
		})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, strings.Join(file, "-"))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeCustomSchema does the same for the resource that a file defines.
func writeCustomSchema(t *testing.T, folder, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Names    struct{ Kind string }
			Group    string
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	group, _, _ := strings.Cut(definition.Spec.Group, ".")
	for _, version := range definition.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		closed(schema)
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ToLower(definition.Spec.Names.Kind) + "-" + group + "-" + version.Name
		if err := os.WriteFile(filepath.Join(folder, name+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// closed refuses fields that a schema does not name, wherever it names some.
func closed(node any) {
	switch n := node.(type) {
	case map[string]any:
		for _, below := range n {
			closed(below)
		}
		if _, named := n["properties"].(map[string]any); named && n["type"] == "object" {
			n["additionalProperties"] = false
		}
	case []any:
		for _, below := range n {
			closed(below)
		}
	}
}

// TestChartConformsToTheSchemasOfKubernetes: strict decoding finds unknown fields; the schemas also
// find fields that are missing.
func TestChartConformsToTheSchemasOfKubernetes(t *testing.T) {
	v := conformer(t)
	for _, file := range []string{"least-values.yaml", "all-values.yaml"} {
		valid := 0
		for _, text := range render(t, file, nil).texts {
			result := v.ValidateResource(resource.Resource{Bytes: []byte(text)})
			switch result.Status {
			case validator.Valid:
				valid++
			case validator.Skipped: // ofOperator
			default:
				t.Errorf("%s: %v %+v\n%s", file, result.Err, result.ValidationErrors, text)
			}
		}
		if valid < 7 {
			t.Errorf("%s: %d resources were compared", file, valid)
		}
	}
	for fault, text := range map[string]string{
		"no selector":  `{apiVersion: apps/v1, kind: Deployment, spec: {template: {}}}`,
		"a wrong type": `{apiVersion: v1, kind: Service, spec: {ports: [{port: http}]}}`,
		"unknown":      `{apiVersion: v1, kind: ServiceAccount, automount: false}`,
		"no metadata": `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject,
			spec: {scaleTargetRef: {name: a}, triggers: [{type: kafka}]}}`,
	} {
		result := v.ValidateResource(resource.Resource{Bytes: []byte(text)})
		if result.Status != validator.Invalid {
			t.Errorf("%s: status %d, %v", fault, result.Status, result.Err)
		}
	}
}
