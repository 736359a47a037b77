package main

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"mcpproxy/internal/config"
)

// readDeployFile returns a file of the folder deploy.
func readDeployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkDeployed parses a configuration as the daemon does, with these environment variables, and checks that it uses all
// of them and no others, and that other machines need a key.
func checkDeployed(t *testing.T, text string, env map[string]string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcp_config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLiveConfig(path, config.Options{Lookup: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{env:(\w+)\}`).FindAllStringSubmatch(text, -1) {
		used[m[1]] = true
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool { return name == "HOME" })
	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, names) {
		t.Errorf("the configuration uses %v, and the environment has %v", got, names)
	}
	cfg := live.Current()
	if warnings := live.Warnings(); len(warnings) > 0 || !cfg.RequireMCPAuth || cfg.APIKey == "" || cfg.PublicURL == "" || len(cfg.TrustedProxies) == 0 {
		t.Errorf("warnings %q, %+v", warnings, cfg)
	}
	return cfg
}

type composeService struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	Tmpfs       []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Networks    any
	Healthcheck struct{ Test []string }
}

// TestCompose: compose.yaml, its configuration, Caddyfile and Dockerfile agree on ports, addresses, variables and files.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]composeService
		Networks map[string]struct {
			Ipam struct{ Config []struct{ Subnet string } }
		}
		Volumes map[string]any
	}
	if err := yaml.UnmarshalWithOptions([]byte(readDeployFile(t, "compose.yaml")), &compose, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	dockerfile, caddy := readDeployFile(t, "Dockerfile"), readDeployFile(t, "Caddyfile")
	env := map[string]string{"HOME": "/data"}
	for name, value := range compose.Services["mcpproxy-1"].Environment {
		env[name] = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(value, "value")
	}
	cfg := checkDeployed(t, readDeployFile(t, "mcp_config.json"), env)
	_, port, _ := net.SplitHostPort(cfg.Listen)

	data := map[string]bool{}
	for _, name := range []string{"mcpproxy-1", "mcpproxy-2"} {
		s := compose.Services[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.Tmpfs, "/tmp") || len(s.Ports) > 0 || s.Build.Dockerfile != "deploy/Dockerfile" {
			t.Errorf("%s: %+v", name, s)
		}
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			if data[from] = data[from] || to == "/data"; strings.HasPrefix(to, "/etc/mcpproxy/") {
				readDeployFile(t, from)
			} else if _, ok := compose.Volumes[from]; !ok || to != "/data" {
				t.Errorf("%s: volume %s", name, v)
			}
		}
		if !strings.Contains(caddy, name+":"+port) {
			t.Errorf("the proxy does not lead to %s at %s", name, port)
		}
	}
	if !data["data-1"] || !data["data-2"] {
		t.Error("the instances do not have a data directory each")
	}
	proxy := compose.Services["proxy"]
	front := proxy.Networks.(map[string]any)["front"].(map[string]any)
	address, err := netip.ParseAddr(front["ipv4_address"].(string))
	if err != nil || !netip.MustParsePrefix(compose.Networks["front"].Ipam.Config[0].Subnet).Contains(address) || !slices.Equal(cfg.TrustedProxies, []string{address.String()}) {
		t.Errorf("the proxy has the address %v, and trusted_proxies is %v", address, cfg.TrustedProxies)
	}
	db := compose.Services["postgres"]
	if !strings.HasPrefix(cfg.Database, "postgres://"+db.Environment["POSTGRES_USER"]+":value@postgres:5432/"+db.Environment["POSTGRES_DB"]) || len(db.Ports) > 0 ||
		db.Environment["POSTGRES_PASSWORD"] != compose.Services["mcpproxy-1"].Environment["MCPPROXY_DB_PASSWORD"] {
		t.Errorf("%s, %+v", cfg.Database, db)
	}
	if proxy.Environment["MCPPROXY_HOST"] == "" || !strings.Contains(caddy, "{$MCPPROXY_HOST}") || !strings.Contains(caddy, "Host localhost") || !strings.Contains(caddy, "health_uri /readyz") {
		t.Errorf("%s", caddy)
	}

	for _, want := range []string{"\nFROM ${BASE}\n", "CGO_ENABLED=0", "\nUSER 65532:65532\n", "\nEXPOSE " + port + "\n", `CMD ["/usr/bin/mcpproxy", "status"]`, "\nVOLUME /data\n", "MCPPROXY_CONFIG=/etc/mcpproxy/mcp_config.json"} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(dockerfile, -1) {
		for _, source := range strings.Fields(line[1]) {
			if _, err := os.Stat(filepath.Join("..", source)); err != nil {
				t.Error(err)
			}
		}
	}
	if version := regexp.MustCompile(`golang:(\d+\.\d+)-`).FindStringSubmatch(dockerfile); version == nil || !strings.Contains(readDeployFile(t, "../go.mod"), "\ngo "+version[1]) {
		t.Errorf("the Dockerfile builds with Go %v", version)
	}
}

type kubernetesProbe struct {
	HTTPGet struct {
		Path, Port  string
		HTTPHeaders []struct{ Name, Value string } `yaml:"httpHeaders"`
	} `yaml:"httpGet"`
}

type kubernetesObject struct {
	Kind       string
	Metadata   struct{ Name string }
	StringData map[string]string `yaml:"stringData"`
	Data       map[string]string
	Spec       struct {
		Replicas int
		Selector any
		Ports    []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				SecurityContext               struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
					StartupProbe    kubernetesProbe `yaml:"startupProbe"`
					ReadinessProbe  kubernetesProbe `yaml:"readinessProbe"`
					LivenessProbe   kubernetesProbe `yaml:"livenessProbe"`
					SecurityContext struct {
						ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
						AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
		Rules                []struct{ Host string }
	}
}

// TestKubernetes: the objects of kubernetes.yaml agree with each other and with the configuration.
func TestKubernetes(t *testing.T) {
	objects := map[string]kubernetesObject{}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(readDeployFile(t, "kubernetes.yaml"))))
	for {
		var o kubernetesObject
		err := decoder.Decode(&o)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Name != "mcpproxy" {
			t.Errorf("%s has the name %q", o.Kind, o.Metadata.Name)
		}
		objects[o.Kind] = o
	}
	if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, []string{"ConfigMap", "Ingress", "PodDisruptionBudget", "Secret", "Service", "StatefulSet"}) {
		t.Fatal(got)
	}
	env := map[string]string{"HOME": "/data"}
	maps.Copy(env, objects["Secret"].StringData)
	cfg := checkDeployed(t, objects["ConfigMap"].Data["mcp_config.json"], env)
	if host := objects["Ingress"].Spec.Rules[0].Host; cfg.PublicURL != "https://"+host {
		t.Errorf("the ingress has the host %s, and public_url is %s", host, cfg.PublicURL)
	}
	set := objects["StatefulSet"].Spec
	pod, c := set.Template.Spec, set.Template.Spec.Containers[0]
	_, port, _ := net.SplitHostPort(cfg.Listen)
	if port != "8080" || c.Ports[0].ContainerPort != 8080 || objects["Service"].Spec.Ports[0].Port != 8080 || objects["Service"].Spec.Ports[0].TargetPort != c.Ports[0].Name {
		t.Errorf("ports: %s, %+v, %+v", port, c.Ports, objects["Service"].Spec.Ports)
	}
	for want, probe := range map[string]kubernetesProbe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe, "/healthz ": c.StartupProbe} {
		if at := probe.HTTPGet; at.Path != strings.TrimSpace(want) || at.Port != c.Ports[0].Name || len(at.HTTPHeaders) != 1 || at.HTTPHeaders[0].Name != "Host" || at.HTTPHeaders[0].Value != "localhost" {
			t.Errorf("%s: %+v", want, probe)
		}
	}
	if set.Replicas < 2 || !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser != nobody || !c.SecurityContext.ReadOnlyRootFilesystem || c.SecurityContext.AllowPrivilegeEscalation == nil ||
		c.Lifecycle.PreStop.Sleep.Seconds == 0 || pod.TerminationGracePeriodSeconds < 40 || !slices.Equal(c.Args, []string{"serve"}) || set.VolumeClaimTemplates[0].Metadata.Name != "data" {
		t.Errorf("%+v", set)
	}
	volumes := []string{"data"}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		if mounted[m.MountPath] = m.Name; !slices.Contains(volumes, m.Name) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	if mounted["/data"] != "data" || mounted["/etc/mcpproxy"] != "config" || mounted["/tmp"] != "tmp" {
		t.Errorf("%v", mounted)
	}
}
