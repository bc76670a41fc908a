package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"dispatcher/config"
)

const chartFolder = "deploy/helm/dispatcher"

// scaledObject is the part of KEDA's resource that the chart uses.
type scaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef  struct{ Name string } `json:"scaleTargetRef"`
		MinReplicaCount int                   `json:"minReplicaCount"`
		MaxReplicaCount int                   `json:"maxReplicaCount"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior struct {
					ScaleDown struct {
						StabilizationWindowSeconds int `json:"stabilizationWindowSeconds"`
					} `json:"scaleDown"`
				} `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
			Type              string                `json:"type"`
			Metadata          map[string]string     `json:"metadata"`
			AuthenticationRef struct{ Name string } `json:"authenticationRef"`
		} `json:"triggers"`
	} `json:"spec"`
}

// manifests are the resources of one rendering, by kind and name.
type manifests struct {
	kinds      []string
	deployment apps.Deployment
	job        batch.Job
	services   map[string]core.Service
	account    core.ServiceAccount
	configMap  core.ConfigMap
	budget     policy.PodDisruptionBudget
	network    networking.NetworkPolicy
	ingresses  map[string]networking.Ingress
	scaled     scaledObject
	podMonitor monitoring.PodMonitor
	alerts     monitoring.PrometheusRule
	texts      []string // of all resources
}

// render fills the templates with values of a file of ci/ and further ones.
func render(t *testing.T, file string, further map[string]any) *manifests {
	t.Helper()
	m, err := tryRender(t, file, further)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tryRender(t *testing.T, file string, further map[string]any) (*manifests, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(root, chartFolder))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(read(t, chartFolder+"/ci/"+file), &values); err != nil {
		t.Fatal(err)
	}
	values = chartutil.MergeTables(further, values)
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{
		Name: "sms", Namespace: "messaging", IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	m := &manifests{
		services: map[string]core.Service{}, ingresses: map[string]networking.Ingress{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq(files[name], "\n---\n") {
			if strings.TrimSpace(part) != "" {
				m.add(t, name, []byte(part))
				m.texts = append(m.texts, part)
			}
		}
	}
	return m, nil
}

// add decodes a resource into the type of its kind. An unknown field is an error.
func (m *manifests) add(t *testing.T, file string, text []byte) {
	t.Helper()
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
	var service core.Service
	var ingress networking.Ingress
	types := map[string]any{
		"apps/v1/Deployment":                      &m.deployment,
		"batch/v1/Job":                            &m.job,
		"v1/Service":                              &service,
		"v1/ServiceAccount":                       &m.account,
		"v1/ConfigMap":                            &m.configMap,
		"policy/v1/PodDisruptionBudget":           &m.budget,
		"networking.k8s.io/v1/NetworkPolicy":      &m.network,
		"networking.k8s.io/v1/Ingress":            &ingress,
		"keda.sh/v1alpha1/ScaledObject":           &m.scaled,
		"monitoring.coreos.com/v1/PodMonitor":     &m.podMonitor,
		"monitoring.coreos.com/v1/PrometheusRule": &m.alerts,
	}
	into := types[kind.APIVersion+"/"+kind.Kind]
	if into == nil {
		t.Fatalf("%s: unexpected %s %s", file, kind.APIVersion, kind.Kind)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
	m.kinds = append(m.kinds, kind.Kind)
	switch kind.Kind {
	case "Service":
		m.services[service.Name] = service
	case "Ingress":
		m.ingresses[ingress.Name] = ingress
	}
}

// environment is what the container of a pod gets, its image's included. Values of secrets are
// examples; files are moved to a folder of the test.
func environment(t *testing.T, pod *core.PodSpec) map[string]string {
	t.Helper()
	all := imageEnvironment(t)
	for _, e := range pod.Containers[0].Env {
		all[e.Name] = e.Value
		if e.ValueFrom != nil {
			all[e.Name] = "postgres://user@db:5432/sms"
		}
		if path := e.Value; strings.HasPrefix(path, "/etc/") {
			if !mounted(pod, path) {
				t.Errorf("%s is %s, which no volume has", e.Name, path)
			}
		}
	}
	return all
}

// mounted tells whether a volume of the pod brings the file or folder.
func mounted(pod *core.PodSpec, path string) bool {
	for _, mount := range pod.Containers[0].VolumeMounts {
		if path != mount.MountPath && filepath.Dir(path) != mount.MountPath {
			continue
		}
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.Secret == nil || path == mount.MountPath {
				return true
			}
			return slices.ContainsFunc(volume.Secret.Items, func(i core.KeyToPath) bool {
				return i.Path == filepath.Base(path)
			})
		}
	}
	return false
}

func TestChartSettingsLoad(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"least-values.yaml", "all-values.yaml"} {
		t.Run(file, func(t *testing.T) {
			// Each retention alone would be refused.
			m := render(t, file, map[string]any{"settings": map[string]any{
				"DISPATCHER_ID_RETENTION": "48h", "DISPATCHER_PAYLOAD_RETENTION": "48h",
				"DISPATCHER_LEDGER_RETENTION": "96h",
			}})
			pod := &m.deployment.Spec.Template.Spec
			env := environment(t, pod)
			for _, name := range []string{
				"DISPATCHER_KAFKA_SASL_PASSWORD_FILE", "DISPATCHER_OIDC_CLIENT_SECRET_FILE",
			} {
				if _, set := env[name]; set {
					env[name] = password
				}
			}
			delete(env, "DISPATCHER_KAFKA_CA_FILE") // it would be parsed
			s := loadSettings(t, env)
			grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
			if grace <= s.ShutdownTimeout {
				t.Errorf("pods are killed after %s, before %s to stop are over", grace,
					s.ShutdownTimeout)
			}
			job := loadWithout(t, environment(t, &m.job.Spec.Template.Spec))
			if job.IDRetention != s.IDRetention || job.PayloadRetention != s.PayloadRetention ||
				job.LedgerRetention != s.LedgerRetention {
				t.Errorf("the job keeps ids for %s, payloads for %s, facts for %s", job.IDRetention,
					job.PayloadRetention, job.LedgerRetention)
			}
		})
	}
}

// TestChartBringsEveryFileThatASettingNames, with one Secret for each value of secrets. mounted has
// checked the volumes.
func TestChartBringsEveryFileThatASettingNames(t *testing.T) {
	most := render(t, "all-values.yaml", nil)
	env := environment(t, &most.deployment.Spec.Template.Spec)
	for _, variable := range config.Variables() {
		if strings.HasSuffix(variable.Name, "_FILE") && env[variable.Name] == "" {
			t.Errorf("no value of the chart sets %s", variable.Name)
		}
	}
	least := render(t, "least-values.yaml", nil)
	if volumes := least.deployment.Spec.Template.Spec.Volumes; len(volumes) != 1 {
		t.Errorf("without values there are the volumes %+v", volumes)
	}
}

// TestChartBringsTheCertificatesOfPostgres to the pods and to the job that migrates.
func TestChartBringsTheCertificatesOfPostgres(t *testing.T) {
	most := render(t, "all-values.yaml", nil)
	least := render(t, "least-values.yaml", nil)
	for name, pods := range map[string][2]*core.PodSpec{
		"deployment": {&most.deployment.Spec.Template.Spec, &least.deployment.Spec.Template.Spec},
		"job":        {&most.job.Spec.Template.Spec, &least.job.Spec.Template.Spec},
	} {
		for i, want := range []bool{true, false} {
			if got := mounted(pods[i], "/etc/dispatcher/postgres"); got != want {
				t.Errorf("%s, values %d: there are certificates: %t", name, i, got)
			}
		}
	}
}

// TestChartProbesAndEvicts: only a process that hangs is restarted, because a restart makes
// attempts in flight unknown. An outage makes all pods unready, and nodes can still be drained.
func TestChartProbesAndEvicts(t *testing.T) {
	m := render(t, "least-values.yaml", nil)
	c := &m.deployment.Spec.Template.Spec.Containers[0]
	for path, probe := range map[string]*core.Probe{
		"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe,
	} {
		if probe == nil || probe.HTTPGet.Path != path ||
			!hasPort(&m.deployment.Spec.Template.Spec, probe.HTTPGet.Port.StrVal) {
			t.Errorf("the probe for %s is %+v", path, probe)
		}
	}
	// A look at the database takes three seconds at most.
	if c.ReadinessProbe.TimeoutSeconds <= 3 {
		t.Errorf("the readiness probe is %+v", c.ReadinessProbe)
	}
	if s := m.budget.Spec; s.MaxUnavailable == nil || s.MaxUnavailable.IntVal != 1 ||
		s.UnhealthyPodEvictionPolicy == nil || *s.UnhealthyPodEvictionPolicy != policy.AlwaysAllow {
		t.Errorf("the disruption budget is %+v", s)
	}
	if u := m.deployment.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntVal != 0 ||
		u.MaxSurge.IntVal != 1 {
		t.Errorf("a restart is %+v", m.deployment.Spec.Strategy)
	}
}

// TestChartMigratesWherePodsRun, with the resources of a pod.
func TestChartMigratesWherePodsRun(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	pod, job := &m.deployment.Spec.Template.Spec, &m.job.Spec.Template.Spec
	if len(job.NodeSelector) == 0 || !maps.Equal(job.NodeSelector, pod.NodeSelector) ||
		len(job.Tolerations) == 0 || !reflect.DeepEqual(job.Tolerations, pod.Tolerations) ||
		len(job.Containers[0].Resources.Limits) == 0 ||
		!reflect.DeepEqual(job.Containers[0].Resources, pod.Containers[0].Resources) {
		t.Errorf("the job has %v %v %v", job.NodeSelector, job.Tolerations,
			job.Containers[0].Resources)
	}
}

// TestChartMakesRolesOnlyWithTheOwnersLogin: the job also has the retention that the roles enforce.
func TestChartMakesRolesOnlyWithTheOwnersLogin(t *testing.T) {
	most := render(t, "all-values.yaml", nil)
	job := &most.job.Spec.Template.Spec.Containers[0]
	if !slices.Equal(job.Args, []string{"migrate", "--roles"}) {
		t.Errorf("the job runs %q", job.Args)
	}
	if got := environment(t, &most.job.Spec.Template.Spec)["DISPATCHER_LEDGER_RETENTION"]; got !=
		"9600h" {
		t.Errorf("the job knows a retention of %q", got)
	}
	if args := render(t, "least-values.yaml", nil).job.Spec.Template.Spec.Containers[0].Args; !slices.Equal(
		args, []string{"migrate"}) {
		t.Errorf("without values the job runs %q", args)
	}
	_, err := tryRender(t, "least-values.yaml", map[string]any{
		"migrate": map[string]any{"roles": true},
	})
	if err == nil || !strings.Contains(err.Error(), "migrate.roles needs migrate.postgres") {
		t.Errorf("roles without the owner's login: %v", err)
	}
}

// TestChartCanWriteReportsToS3: with a role of the service account, or with keys.
func TestChartCanWriteReportsToS3(t *testing.T) {
	most := render(t, "all-values.yaml", nil)
	if most.account.Annotations["eks.amazonaws.com/role-arn"] == "" {
		t.Errorf("the service account has %v", most.account.Annotations)
	}
	from := most.deployment.Spec.Template.Spec.Containers[0].EnvFrom
	if len(from) != 1 || from[0].SecretRef == nil || from[0].SecretRef.Name != "dispatcher-aws" {
		t.Errorf("the variables come from %+v", from)
	}
	least := render(t, "least-values.yaml", nil)
	if len(least.account.Annotations)+
		len(least.deployment.Spec.Template.Spec.Containers[0].EnvFrom) > 0 {
		t.Error("there are credentials without values")
	}
}

// TestChartLetsPeopleReachTheConsole and the API, but not metrics and profiles, which need no
// token.
func TestChartLetsPeopleReachTheConsole(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	from := map[string]bool{}
	for _, rule := range m.network.Spec.Ingress {
		if rule.Ports[0].Port.StrVal == "http" {
			for _, peer := range rule.From {
				from[peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]] = true
			}
		}
	}
	if !maps.Equal(from, map[string]bool{"monitoring": true, "ingress": true}) {
		t.Errorf("these namespaces reach the port of the console: %v", from)
	}
	ingress := m.ingresses["sms-dispatcher"]
	rule := ingress.Spec.Rules[0]
	if tls := ingress.Spec.TLS; rule.Host != "sms.internal.example.com" || len(tls) != 1 ||
		!slices.Equal(tls[0].Hosts, []string{rule.Host}) || tls[0].SecretName == "" ||
		*ingress.Spec.IngressClassName != "internal" {
		t.Errorf("the ingress is %+v", ingress.Spec)
	}
	var got []string
	for _, path := range rule.HTTP.Paths {
		service, ok := m.services[path.Backend.Service.Name]
		if !ok || service.Spec.Ports[0].Name != path.Backend.Service.Port.Name {
			t.Errorf("%s leads to %+v, which the chart does not have", path.Path,
				path.Backend.Service)
		}
		// An outage of Kafka or of all carriers makes every pod unready: then people need the console.
		if path.Path != "/api" && !service.Spec.PublishNotReadyAddresses {
			t.Errorf("no unready pod answers for %s", path.Path)
		}
		if exact := *path.PathType == networking.PathTypeExact; exact != (path.Path == "/") {
			t.Errorf("%s is %s", path.Path, *path.PathType)
		}
		got = append(got, path.Path)
	}
	want := append(pagesOfTheConsole(t), "/api")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the ingress passes %q, want %q", got, want)
	}
	if least := render(t, "least-values.yaml", nil); slices.Contains(least.kinds, "Ingress") ||
		len(least.network.Spec.Ingress) != 2 {
		t.Errorf("without values there is an ingress, or the policy has %+v",
			least.network.Spec.Ingress)
	}
}

// pagesOfTheConsole are the beginnings of the paths that it serves. A pattern in pages.go is a
// literal, or begins with a constant of its package.
func pagesOfTheConsole(t *testing.T) []string {
	t.Helper()
	const folder = "cmd/dispatcher/internal/pages"
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, file := range files {
		for _, found := range regexp.MustCompile(`(?m)^(?:const)?\s+(\w+)\s+= "(/[^"]*)"`).
			FindAllSubmatch(read(t, filepath.Join(folder, filepath.Base(file))), -1) {
			constants[string(found[1])] = string(found[2])
		}
	}
	var all []string
	for _, found := range regexp.MustCompile(`"(?:GET|POST) (?:(/[^"]*)"|" ?\+ ?(\w+))`).
		FindAllSubmatch(read(t, folder+"/pages.go"), -1) {
		path := string(found[1])
		if name := string(found[2]); name != "" {
			path = constants[name]
			if path == "" {
				t.Fatalf("%s has no constant %s", folder, name)
			}
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		all = append(all, "/"+strings.TrimPrefix(first, "{$}"))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 15 {
		t.Errorf("the console has the pages %q", all)
	}
	return all
}

// TestChartOpensNothingForAnEmptyList: a rule without anybody would let everybody in, and one
// without a port everything out.
func TestChartOpensNothingForAnEmptyList(t *testing.T) {
	for name, none := range map[string]any{"an empty list": []any{}, "an empty key": nil} {
		t.Run(name, func(t *testing.T) { opensNothing(t, none) })
	}
}

func opensNothing(t *testing.T, none any) {
	t.Helper()
	m := render(t, "all-values.yaml", map[string]any{"networkPolicy": map[string]any{
		"metricsFrom": none, "consoleFrom": none, "internalPorts": none, "tracePorts": none,
		"providerPorts": none,
	}})
	spec := m.network.Spec
	if len(spec.Ingress) != 1 || len(spec.Ingress[0].Ports) != 1 ||
		spec.Ingress[0].Ports[0].Port.StrVal != "receipts" {
		t.Errorf("the policy lets in %+v", spec.Ingress)
	}
	if len(spec.Egress) != 1 || len(spec.Egress[0].Ports) != 2 ||
		spec.Egress[0].Ports[0].Port.IntVal != 53 || spec.Egress[0].Ports[1].Port.IntVal != 53 {
		t.Errorf("the policy lets out %+v", spec.Egress)
	}
}

// TestChartLetsProvidersReachTheWebhooks at the URL that they sign, and nothing else.
func TestChartLetsProvidersReachTheWebhooks(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	spec := m.ingresses["sms-dispatcher-receipts"].Spec
	if len(spec.Rules) != 1 || len(spec.Rules[0].HTTP.Paths) != 1 || len(spec.TLS) != 1 {
		t.Fatalf("the ingress is %+v", spec)
	}
	env := environment(t, &m.deployment.Spec.Template.Spec)
	if url := "https://" + spec.Rules[0].Host; env["DISPATCHER_PUBLIC_URL"] != url ||
		!slices.Equal(spec.TLS[0].Hosts, []string{spec.Rules[0].Host}) ||
		spec.TLS[0].SecretName == "" || *spec.IngressClassName != "public" {
		t.Errorf("the URL is %s, the ingress %+v", env["DISPATCHER_PUBLIC_URL"], spec)
	}
	path := spec.Rules[0].HTTP.Paths[0]
	service, ok := m.services[path.Backend.Service.Name]
	if path.Path != "/receipts" || *path.PathType != networking.PathTypePrefix || !ok ||
		service.Spec.Ports[0].Name != path.Backend.Service.Port.Name ||
		!service.Spec.PublishNotReadyAddresses {
		t.Errorf("%+v leads to %+v", path, service)
	}
	if !regexp.MustCompile(`callbackPath = "/receipts/"`).Match(
		read(t, "cmd/dispatcher/internal/receive/webhook.go")) {
		t.Error("the webhooks are elsewhere now")
	}
	_, err := tryRender(t, "all-values.yaml", map[string]any{
		"settings": map[string]any{"DISPATCHER_PUBLIC_URL": "https://elsewhere.example.com"},
	})
	if err == nil || !strings.Contains(err.Error(), "providers sign the URL") {
		t.Errorf("with another URL: %v", err)
	}
}

// TestChartRefusesUnknownValues, and values that are set elsewhere.
func TestChartRefusesUnknownValues(t *testing.T) {
	chart, err := loader.Load(filepath.Join(root, chartFolder))
	if err != nil {
		t.Fatal(err)
	}
	good := `settings: {DISPATCHER_KAFKA_BROKERS: "kafka:9092"}`
	for text, ok := range map[string]bool{
		good:                   true,
		"{}":                   false, // no brokers
		good + "\nreplica: 3":  false,
		good + "\nreplicas: 0": true, // stopped, for a restore
		good + "\nprometheusRule: {codeLanes: [shop.otp]}":                                          true,
		good + "\nsecrets: {postgres: {name: ''}}":                                                  false,
		good + "\nprometheusRule: {docs: docs}":                                                     false,
		good + "\ningress: {enabled: true}":                                                         false, // no host
		good + "\nreceiptsIngress: {enabled: true}":                                                 false,
		`settings: {DISPATCHER_KAFKA_BROKERS: k, DISPATCHER_SEAL_KEY_FILE: /seal.key}`:              false,
		`settings: {DISPATCHER_KAFKA_BROKERS: k, DISPATCHER_POSTGRES_URL: "postgres://u:p@db/sms"}`: false,
		`settings: {DISPATCHER_KAFKA_BROKERS: k, OTEL_EXPORTER_OTLP_HEADERS: api-key=secret}`:       false,
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		_, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{},
			chartutil.DefaultCapabilities)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestChartHasTheAlertsOfTheRuleFile, all of them and as they stand there, but for the job alone
// under which the Prometheus operator scrapes the pods.
func TestChartHasTheAlertsOfTheRuleFile(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	if file := rulesOf(t, "messaging/sms-dispatcher"); !reflect.DeepEqual(m.alerts.Spec, file) {
		t.Errorf("the chart has %+v", m.alerts.Spec)
	}
	m = render(t, "all-values.yaml", map[string]any{
		"prometheusRule": map[string]any{"job": "sms"},
	})
	if file := rulesOf(t, "sms"); !reflect.DeepEqual(m.alerts.Spec, file) {
		t.Errorf("with another job the chart has %+v", m.alerts.Spec)
	}
}

// rulesOf are those of the rule file, for a job.
func rulesOf(t *testing.T, job string) (file monitoring.PrometheusRuleSpec) {
	t.Helper()
	text := string(read(t, "deploy/prometheus/alerts.yml"))
	const any, lane = `job=~"(.*/)?[^/]*dispatcher[^/]*"`, `{lane=~"otp"}`
	if strings.Count(text, any) != 3 || strings.Count(text, lane) != 1 {
		t.Fatal("the rule file names jobs in another way")
	}
	text = strings.ReplaceAll(text, any, `job="`+job+`"`)
	text = strings.ReplaceAll(text, lane, `{job="`+job+`",lane=~"otp"}`)
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestChartNamesTheLanesOfCodes in the rule that the alerts about late codes refer to.
func TestChartNamesTheLanesOfCodes(t *testing.T) {
	m := render(t, "all-values.yaml", map[string]any{
		"prometheusRule": map[string]any{"codeLanes": []any{"otp", "shop.login"}},
	})
	rule := m.alerts.Spec.Groups[0].Rules[0]
	if rule.Record != "dispatcher:code_lane" || rule.Expr.String() !=
		`group by (job, lane) (dispatcher_dispatch_oldest_waiting_seconds{`+
			`job="messaging/sms-dispatcher",lane=~"otp|shop[.]login"})` {
		t.Errorf("got %+v", rule)
	}
}

// TestChartHasTheAddressOfTheRunbook in every alert, as a value says.
func TestChartHasTheAddressOfTheRunbook(t *testing.T) {
	m := render(t, "all-values.yaml", map[string]any{
		"prometheusRule": map[string]any{"docs": "https://wiki.example.com/sms/"},
	})
	found := 0
	for _, group := range m.alerts.Spec.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			found++
			want := "https://wiki.example.com/sms/runbook.md#" + strings.ToLower(rule.Alert)
			if got := rule.Annotations["runbook_url"]; got != want {
				t.Errorf("%s has %s, want %s", rule.Alert, got, want)
			}
		}
	}
	if found < 30 {
		t.Errorf("there are %d alerts", found)
	}
}

// TestChartWithoutAnAddressHasNoRunbook: no alert then names an address that leads nowhere, and
// nothing else of the rules is lost.
func TestChartWithoutAnAddressHasNoRunbook(t *testing.T) {
	file := rulesOf(t, "messaging/sms-dispatcher")
	for i := range file.Groups {
		for j := range file.Groups[i].Rules {
			delete(file.Groups[i].Rules[j].Annotations, "runbook_url")
		}
	}
	m := render(t, "all-values.yaml", map[string]any{"prometheusRule": map[string]any{"docs": ""}})
	if !reflect.DeepEqual(m.alerts.Spec, file) {
		t.Errorf("the chart has %+v", m.alerts.Spec)
	}
}

// TestChartHasThePortsOfTraces open where settings switch traces on, and only there.
func TestChartHasThePortsOfTraces(t *testing.T) {
	for name, c := range map[string]struct {
		settings, policy map[string]any
		want             []int32
	}{
		"no traces": {nil, nil, nil},
		"an endpoint": {
			map[string]any{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, nil,
			[]int32{4317, 4318},
		},
		"an endpoint of traces": {
			map[string]any{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317"}, nil,
			[]int32{4317, 4318},
		},
		"the default endpoint": {
			map[string]any{"OTEL_TRACES_EXPORTER": "otlp"}, nil, []int32{4317, 4318},
		},
		"another port": {
			map[string]any{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:55681"},
			map[string]any{"tracePorts": []any{55681}}, []int32{55681},
		},
	} {
		further := map[string]any{}
		if c.settings != nil {
			further["settings"] = c.settings
		}
		if c.policy != nil {
			further["networkPolicy"] = c.policy
		}
		var got []int32
		for _, rule := range render(t, "least-values.yaml", further).network.Spec.Egress {
			for _, port := range rule.Ports {
				if n := port.Port.IntVal; n == 4317 || n == 4318 || n == 55681 {
					got = append(got, n)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the ports %v are open, want %v", name, got, c.want)
		}
	}
}

// TestChartSelectsItsPods: what selects pods selects those of the deployment, and not the job's.
func TestChartSelectsItsPods(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	pod, job := m.deployment.Spec.Template.Labels, m.job.Spec.Template.Labels
	selectors := map[string]map[string]string{
		"deployment": m.deployment.Spec.Selector.MatchLabels,
		"budget":     m.budget.Spec.Selector.MatchLabels,
		"network":    m.network.Spec.PodSelector.MatchLabels,
		"monitor":    m.podMonitor.Spec.Selector.MatchLabels,
		"spread": m.deployment.Spec.Template.Spec.TopologySpreadConstraints[0].
			LabelSelector.MatchLabels,
	}
	for name, service := range m.services {
		selectors[name] = service.Spec.Selector
		for _, port := range service.Spec.Ports {
			if !hasPort(&m.deployment.Spec.Template.Spec, port.TargetPort.StrVal) {
				t.Errorf("service %s leads to port %s, which pods do not have", name,
					port.TargetPort.StrVal)
			}
		}
	}
	selects := func(selector, labels map[string]string) bool {
		for key, value := range selector {
			if labels[key] != value {
				return false
			}
		}
		return len(selector) > 0
	}
	if len(selectors) != 8 {
		t.Errorf("%d selectors", len(selectors))
	}
	for name, selector := range selectors {
		if !selects(selector, pod) || selects(selector, job) {
			t.Errorf("%s selects %v", name, selector)
		}
	}
	if !m.services["sms-dispatcher-receipts"].Spec.PublishNotReadyAddresses {
		t.Error("an outage of all carriers would keep receipts out")
	}
}

func hasPort(pod *core.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Containers[0].Ports, func(p core.ContainerPort) bool {
		return p.Name == name
	})
}

// TestChartPodsHaveNoRights that they do not need, as the restricted profile of Kubernetes asks.
func TestChartPodsHaveNoRights(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	for name, pod := range map[string]core.PodSpec{
		"deployment": m.deployment.Spec.Template.Spec, "job": m.job.Spec.Template.Spec,
	} {
		s, c := pod.SecurityContext, pod.Containers[0].SecurityContext
		if !*s.RunAsNonRoot || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
			!*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation ||
			!slices.Equal(c.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("the %s has %+v %+v", name, s, c)
		}
		if *pod.AutomountServiceAccountToken {
			t.Errorf("the %s gets a token for the API of Kubernetes", name)
		}
		// A service named dispatcher would set DISPATCHER_PORT, which is not a setting.
		if *pod.EnableServiceLinks {
			t.Errorf("the %s gets a variable for each service", name)
		}
		if !strings.HasSuffix(pod.Containers[0].Image, ":1.2.3") {
			t.Errorf("the %s runs %s", name, pod.Containers[0].Image)
		}
	}
}

// TestChartScalesOnTheLagOfEveryLane that a document without lanes has.
func TestChartScalesOnTheLagOfEveryLane(t *testing.T) {
	m := render(t, "all-values.yaml", nil)
	document, err := config.ParseRouting("routing", []byte(m.configMap.Data["routing.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range document.Lanes {
		lane := &document.Lanes[i]
		for _, topic := range lane.Topics {
			want[topic] = "sms." + lane.Name
		}
	}
	got := map[string]string{}
	for _, trigger := range m.scaled.Spec.Triggers {
		got[trigger.Metadata["topic"]] = trigger.Metadata["consumerGroup"]
	}
	if len(want) != 3 || !maps.Equal(got, want) {
		t.Errorf("it reads the lag of %v, want %v", got, want)
	}
	if m.scaled.Spec.ScaleTargetRef.Name != m.deployment.Name || m.deployment.Spec.Replicas != nil {
		t.Error("the deployment sets its own number of pods")
	}
	if none := render(t, "least-values.yaml", map[string]any{"replicas": 0}); *none.deployment.
		Spec.Replicas != 0 {
		t.Errorf("a stopped dispatcher has %d pods", *none.deployment.Spec.Replicas)
	}
	if least := render(t, "least-values.yaml", nil); slices.Contains(least.kinds, "ScaledObject") ||
		*least.deployment.Spec.Replicas != 2 {
		t.Error("without autoscaling there are not two pods")
	}
}

// TestChartPrintsLargeNumbers whole.
func TestChartPrintsLargeNumbers(t *testing.T) {
	m := render(t, "least-values.yaml", map[string]any{
		"settings": map[string]any{"DISPATCHER_MAX_UNSETTLED": float64(1_000_000)},
	})
	env := environment(t, &m.deployment.Spec.Template.Spec)
	if got := env["DISPATCHER_MAX_UNSETTLED"]; got != "1000000" {
		t.Errorf("a million is %s", got)
	}
}
