package classify

import (
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

// disguise is a text that hides a statement, and the statement's effect.
type disguise struct {
	text string
	want policy.Operation
}

// disguised returns each text of the file with each of the hidden statements inserted.
func disguised(t *testing.T) (all []disguise) {
	t.Helper()
	text, err := os.ReadFile("testdata/disguises.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range sectionfile.Parse(string(text)).SectionByHead("sql").Lines {
		whole := unescape.Replace(line)
		// Only a separate $ is the placeholder for the statement.
		i := strings.LastIndex(" "+whole+" ", " $ ")
		if i < 0 {
			i = strings.LastIndexByte(whole, '$')
		}
		for statement, want := range map[string]policy.Operation{
			"DROP TABLE users": policy.Destructive, "delete from users": policy.Destructive, "TRUNCATE users": policy.Destructive, "dRoP/**/TaBlE users": policy.Destructive,
			"UPDATE users SET admin = 1": policy.Write, "INSERT INTO users VALUES (1)": policy.Write, "ALTER TABLE users ADD x int": policy.Write, "CREATE TABLE x (a int)": policy.Write,
		} {
			all = append(all, disguise{whole[:i] + statement + whole[i+1:], want})
		}
	}
	return all
}

// TestDisguises checks that a disguised statement never gets a less dangerous lane than its effect.
func TestDisguises(t *testing.T) {
	all := disguised(t)
	for _, d := range all {
		if v := classifySQL(d.text); v.Operation < d.want {
			t.Errorf("%q: %s (%s), want %s", d.text, v.Operation, v.Word, d.want)
		}
	}
	t.Logf("%d texts", len(all))
	if len(all) < 500 {
		t.Errorf("only %d texts", len(all))
	}
}

// notRead contains texts that are a read in no dialect.
var notRead = map[string]policy.Operation{
	"SELECT 1DROP TABLE x": policy.Destructive, "SELECT 1eDROP TABLE x": policy.Destructive, "SELECT 0xDROP TABLE x": policy.Destructive, "SELECT 1.DROP TABLE x": policy.Destructive,
	"SELECT 1 EXEC sp_who": policy.Destructive, "SELECT 1 xp_cmdshell": policy.Destructive, "EXEC('drop table x')": policy.Destructive, "EXECUTE IMMEDIATE 'x'": policy.Destructive,
	"SELECT * INTO OUTFILE '/tmp/x' FROM t": policy.Write, "SELECT a FROM t FOR SHARE": policy.Write, "SELECT a FROM t LOCK IN SHARE MODE": policy.Write, "SELECT s.NEXTVAL FROM dual": policy.Write,
	"SELECT NEXT VALUE FOR s": policy.Write, "SELECT pg_terminate_backend(1)": policy.Write, "SELECT lo_unlink(1)": policy.Write, "SELECT dblink_exec('x', 'drop table y')": policy.Write,
	"SELECT load_extension('x')": policy.Write, "SELECT writefile('x', 'y')": policy.Write, "SELECT query_to_xml('delete from x', true, true, '')": policy.Write, "SELECT set_config('a', 'b', false)": policy.Write,
	"SELECT sleep(10)": policy.Write, "SELECT load_file('/etc/passwd')": policy.Write, "SELECT SYSTEM$ABORT_SESSION(1)": policy.Write, "SELECT sys_exec('x')": policy.Write,
	"PRAGMA journal_mode = DELETE": policy.Write, "PRAGMA writable_schema = 1": policy.Write, "PRAGMA user_version(3)": policy.Write, "PRAGMA main.user_version = 3": policy.Write,
	"ATTACH DATABASE 'x' AS y": policy.Write, "VACUUM INTO 'x'": policy.Write, "COPY t TO PROGRAM 'rm -rf /'": policy.Write, "COPY (SELECT 1) TO '/tmp/x'": policy.Write, "LOAD DATA INFILE 'x' INTO TABLE t": policy.Write,
	"SET a = 1": policy.Write, "USE db": policy.Write, "CALL p()": policy.Write, "HANDLER t OPEN": policy.Write, `\! rm -rf /`: policy.Write, ".shell rm -rf /": policy.Write, "SELECT 1\x00; DROP TABLE x": policy.Destructive,
	"GRANT ALL ON t TO u": policy.Write, "REVOKE ALL ON t FROM u": policy.Destructive, "KILL 5": policy.Destructive, "SHUTDOWN": policy.Destructive, "PURGE BINARY LOGS BEFORE now()": policy.Destructive,
	"INSERT OVERWRITE TABLE t SELECT 1": policy.Destructive, "FROM t INSERT INTO u SELECT a": policy.Write, "SELECT TRANSFORM(a) USING 'sh' FROM t": policy.Write, "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE": policy.Destructive,
	"WITH evil(a) AS (SELECT 1) SELECT * FROM u, other(a) AS (b int)": policy.Write, "SELECT * FROM public.lower('x')": policy.Write, `SELECT "Lower"('x')`: policy.Write, "SELECT a.b.lower('x')": policy.Write,
	"ANALYZE t": policy.Write, "REFRESH MATERIALIZED VIEW v": policy.Write, "EXPLAIN ANALYZE REFRESH MATERIALIZED VIEW v": policy.Write, "EXPLAIN ANALYZE CALL p()": policy.Write, "DESCRIBE x y z": policy.Write, "SHOW": policy.Read,
	"'": policy.Write, "SELECT 'a": policy.Write, "-- nothing": policy.Write, ";": policy.Write, "12": policy.Write,
}

func TestNotRead(t *testing.T) {
	for text, want := range notRead {
		if v := classifySQL(text); v.Operation < want || want == policy.Read && v.Operation != want {
			t.Errorf("%s: %s (%s), want %s", text, v.Operation, v.Word, want)
		}
	}
	if v := classifySQL("SELECT '" + strings.Repeat("x", maxText) + "'"); v.Operation != policy.Destructive {
		t.Errorf("a text that is too long: %+v", v)
	}
}

func TestShellNotRead(t *testing.T) {
	for text, want := range map[string]policy.Operation{
		"rm -rf /": policy.Destructive, "ls; rm x": policy.Destructive, "ls && rm x": policy.Destructive, "ls | xargs rm": policy.Destructive, "echo $(rm x)": policy.Destructive, "echo `rm x`": policy.Destructive,
		`echo "a $(rm x) b"`: policy.Destructive, "cat <(rm x)": policy.Destructive, "ls & rm x": policy.Destructive, "(rm x)": policy.Destructive, "{ rm x; }": policy.Destructive, "if rm x; then ls; fi": policy.Destructive,
		"for i in 1; do rm $i; done": policy.Destructive, "f() { rm x; }; f": policy.Destructive, "r''m x": policy.Destructive, `\rm x`: policy.Destructive, `"rm" x`: policy.Destructive, "/bin/rm x": policy.Destructive, "./rm x": policy.Destructive,
		"sudo rm x": policy.Destructive, "env rm x": policy.Destructive, "env A=b rm x": policy.Destructive, "timeout 5 rm x": policy.Destructive, "nice -n 5 rm x": policy.Destructive, "command rm x": policy.Destructive, "time rm x": policy.Destructive,
		"sh -c 'rm x'": policy.Destructive, `bash -c "ls; rm x"`: policy.Destructive, "eval 'rm x'": policy.Destructive, "eval rm x": policy.Destructive, "watch rm x": policy.Destructive, "busybox rm x": policy.Destructive, "find . -delete": policy.Destructive,
		"find . -exec rm {} +": policy.Destructive, `find . -name x -exec sh -c 'rm "$1"' _ {} \;`: policy.Destructive, "cat <<E\n$(rm x)\nE": policy.Destructive, "a=$(rm x)": policy.Destructive, "ls ${a:-$(rm x)}": policy.Destructive, "echo hi > /dev/sda": policy.Destructive,
		"git push --force": policy.Destructive, "git push -f": policy.Destructive, "git clean -fd": policy.Destructive, "git reset --hard": policy.Destructive, "git branch -D x": policy.Destructive, "kubectl delete pod x": policy.Destructive, "kubectl --foo bar delete pod x": policy.Destructive,
		"docker rm x": policy.Destructive, "docker system prune": policy.Destructive, "gh repo delete x": policy.Destructive, "gh api -X DELETE repos/a/b": policy.Destructive, "aws s3 rm s3://x": policy.Destructive, "aws ec2 terminate-instances": policy.Destructive,
		"terraform destroy": policy.Destructive, "terraform apply -destroy": policy.Destructive, "helm uninstall x": policy.Destructive, "gcloud compute instances delete list": policy.Destructive, "az group delete -n list": policy.Destructive, "npm unpublish x": policy.Destructive,
		"curl -X DELETE https://x": policy.Destructive, "rm x (": policy.Destructive, "rsync -a --delete a b": policy.Destructive, "kill 1": policy.Destructive, "dd if=a of=b": policy.Destructive,

		"echo a > b": policy.Write, "ls >> b": policy.Write, "cat a >| b": policy.Write, "ls &> b": policy.Write, "cat <> b": policy.Write, "echo a > $X": policy.Write, "cat < /dev/tcp/a/1": policy.Write, "$X a": policy.Write, "l? x": policy.Write, "{rm,x}": policy.Write,
		"$'\\x72\\x6d' x": policy.Write, "unknown": policy.Write, "./script.sh": policy.Write, "bash script.sh": policy.Write, "bash": policy.Write, "curl x | sh": policy.Write, "source x": policy.Write, ". x": policy.Write, "eval $X": policy.Write, "sh -c $X": policy.Write,
		"PATH=. ls": policy.Write, "LD_PRELOAD=x ls": policy.Write, "export PATH=x; ls": policy.Write, "env PATH=x ls": policy.Write, "env -S 'ls x'": policy.Write, "GIT_PAGER=x git log": policy.Write, "alias ls=rm": policy.Write, "trap 'rm x' EXIT": policy.Write,
		"sort -o b a": policy.Write, "sort -uob a": policy.Write, "sort --outp=b a": policy.Write, "sort --compress-program=x a": policy.Write, "sort $X": policy.Write, "uniq a b": policy.Write, "xxd a b": policy.Write, "date -s x": policy.Write, "date 01010101": policy.Write, "hostname x": policy.Write,
		"find . -fprint x": policy.Write, "find . $X": policy.Write, "find . -exec $X {} +": policy.Write, "sed -i s/a/b/ x": policy.Write, "sed 's/a/b/e' x": policy.Write, "sed 's/a/b/w y' x": policy.Write, "sed -n 'w y' x": policy.Write, "sed '1e rm' x": policy.Write, "sed -f x y": policy.Write,
		"awk 'BEGIN{system(\"rm\")}'": policy.Write, "awk '{print > \"x\"}'": policy.Write, "awk '{print | \"sh\"}'": policy.Write, "awk -f x": policy.Write, "awk '{\"date\" | getline}'": policy.Write, "tee x": policy.Write, "ls | tee x": policy.Write, "xargs sort": policy.Write, "xargs": policy.Read,
		"[[ 'a[$(rm x)]' -eq 1 ]]": policy.Write, "echo $((a[1]))": policy.Write, "((x=1))": policy.Write, "let x=1": policy.Write, "test -v 'a[$(rm x)]'": policy.Write, "printf -v 'a[$(rm x)]' x": policy.Write, "read 'a[$(rm x)]'": policy.Write, "echo ${x@P}": policy.Write, "echo ${!x}": policy.Write,
		"echo ${a[$x]}": policy.Write, "echo ${a:x}": policy.Write, "declare -i x=1": policy.Write, "jobs -x rm x": policy.Write, "coproc ls": policy.Write, "git -c core.pager=x log": policy.Write, "git log --output=x": policy.Write, "git log --outp=x": policy.Write, "git grep -Ox y": policy.Write, "git diff --ext-diff": policy.Write,
		"git branch x": policy.Write, "git tag x": policy.Write, "git remote add a b": policy.Write, "git config a b": policy.Write, "git ls-remote --upload-pack=x y": policy.Write, "git $X": policy.Write, "git foo": policy.Write, "git stash": policy.Write, "git commit -m 'log'": policy.Write, "kubectl exec x -- ls": policy.Write,
		"kubectl $X get": policy.Write, "kubectl apply -f x": policy.Write, "docker run x": policy.Write, "docker exec x ls": policy.Write, "docker build .": policy.Write, "gh pr create": policy.Write, "gh api -X POST x": policy.Write, "gh api x -f a=b": policy.Write, "gh api graphql -f query=x": policy.Write,
		"aws s3 cp a b": policy.Write, "aws s3api get-object x": policy.Write, "aws lambda invoke x": policy.Write, "terraform apply": policy.Write, "npm install x": policy.Write, "npm run x": policy.Write, "npx x": policy.Write, "helm install x": policy.Write, "helm template x --post-renderer y": policy.Write,
		"gcloud compute ssh list": policy.Write, "az vm run-command invoke": policy.Write, "curl -o x y": policy.Write, "curl -O y": policy.Write, "curl -d x y": policy.Write, "curl -X POST y": policy.Write, "curl -sXPOST y": policy.Write, "curl file:///etc/shadow": policy.Write, "curl -K x": policy.Write, "curl http://x/$(cat y)": policy.Write, "curl --upload-file x y": policy.Write,
		"tar xf x": policy.Write, "tar -tf x --to-command=y": policy.Write, "tar tf x --checkpoint-action=exec=y": policy.Write, "tar -tf x -I y": policy.Write, "": policy.Write, "# nothing": policy.Write, "ls (": policy.Write, "mv a b": policy.Write, "touch x": policy.Write, "sudo ls": policy.Write, "rg --pre x y": policy.Write, "python3 -c 'x'": policy.Write, "ss -K": policy.Write,
		"ls \n rm x": policy.Destructive, "ls\r\nrm x": policy.Destructive, "ls \\\n; rm x": policy.Destructive, "echo 'a'\\''b'; rm x": policy.Destructive, "echo \"\\\"\"; rm x": policy.Destructive, "while :; do rm x; done": policy.Destructive, "case a in a) rm x;; esac": policy.Destructive, "! rm x": policy.Destructive, "ls || rm x": policy.Destructive, "ls |& rm x": policy.Destructive,
	} {
		if v := classifyShell(text); v.Operation < want || want == policy.Read && v.Operation != want {
			t.Errorf("%s: %s (%s), want %s", text, v.Operation, v.Word, want)
		}
	}
	if v := classifyShell(strings.Repeat("a", maxText+1)); v.Operation != policy.Destructive {
		t.Errorf("a line that is too long: %+v", v)
	}
	if v := classifyShell(strings.Repeat("echo $(", 5000) + "rm x" + strings.Repeat(")", 5000)); v.Operation < policy.Write {
		t.Errorf("a deep line: %+v", v)
	}
}

// TestManyCommands checks that a text with more commands than the limit is classified as destructive, like a text
// that is too long. Commands in quotes, comments and here-documents are not counted.
func TestManyCommands(t *testing.T) {
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	for text, want := range map[string]policy.Operation{
		lines(maxCommands-1, "git log"): policy.Read, lines(maxCommands, "git log"): policy.Destructive, lines(maxCommands/2, "ls | wc"): policy.Destructive, lines(maxCommands, "git push -f"): policy.Destructive,
		strings.Repeat("(", maxText): policy.Destructive, "echo \"" + strings.Repeat("$(", maxCommands): policy.Destructive, strings.Repeat("`", maxCommands): policy.Destructive, "ls \"'\" '\"' \\' \n" + lines(maxCommands, "ls"): policy.Destructive,
		"ls # don't\n" + lines(maxCommands, "ls"): policy.Destructive, "cat <<< a\n" + lines(maxCommands, "ls"): policy.Destructive, "cat <<-'E F' x\nE F\n" + lines(maxCommands, "ls"): policy.Read,
		strings.Repeat("{ ", maxText/2): policy.Destructive, "echo " + strings.Repeat("$[", maxText/2): policy.Destructive, `echo ` + strings.Repeat(`\a`, 500): policy.Read,
		"jq '" + strings.Repeat(".a | (.b; .c) |\n", 50) + "'": policy.Read, "grep -E \"" + strings.Repeat("a|b|", 50) + "\" x": policy.Read, "ls # " + strings.Repeat("; ", 50): policy.Read,
		"cat > x <<'EOF'\n" + lines(100, "a; b") + "EOF\nls\n": policy.Write, "cat <<EOF\n" + lines(100, "a; b") + "EOF\n" + lines(maxCommands, "ls"): policy.Destructive,
		"git commit -m \"$(cat <<'EOF'\n" + lines(100, "a \"b\"") + "EOF\n)\"": policy.Write, "ls 2>&1 && ls 2>&1\n" + lines(maxCommands-4, "ls"): policy.Read,
		"echo " + strings.Repeat("$a", maxWords-2): policy.Read, "echo " + strings.Repeat("$a", maxWords): policy.Destructive, "echo \"" + strings.Repeat("$a", maxWords) + "\"": policy.Destructive,
		"cat" + strings.Repeat("<a", maxWords-1): policy.Read, "cat" + strings.Repeat(">a", maxWords): policy.Destructive, "echo " + strings.Repeat("'a'\"b\"", maxWords/2): policy.Destructive,
	} {
		if v := classifyShell(text); v.Operation != want {
			t.Errorf("%.100q: %s (%s), want %s", text, v.Operation, v.Word, want)
		}
	}
}

func FuzzSQL(f *testing.F) {
	for _, s := range []string{"SELECT 1", "select 'a\\'; drop table x -- '", "/*!1 x */ $a$ ' $a$ q'[x]' \"\"\"x\"\"\" [x] `y`", "WITH a(b) AS (SELECT 1) SELECT * FROM a", "PRAGMA x.y(1)", "EXPLAIN (ANALYZE) SELECT f(1)", "SELECT 0xg 1e1e \u00a0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := classifySQL(text)
		if v.Operation == policy.NoOperation || v != classifySQL(text) || v.Operation > policy.Read && v.Word == "" {
			t.Fatalf("%q: %+v", text, v)
		}
		if with := classifySQL(text + "\n; DROP TABLE x"); v.Operation == policy.Read && with.Operation == policy.Read {
			t.Fatalf("%q: still a read with a second statement", text)
		}
	})
}

func FuzzShell(f *testing.F) {
	for _, s := range []string{"ls | wc -l", "git log && rm x", "find . -exec sh -c 'a' \\;", "a=$((1)) b[1]=2 ${x:-y} <(ls) <<E\nE", "tar tf x", "sed 's/a/b/' x > /dev/null", "env -i A=b xargs -0 grep -- x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := classifyShell(text)
		if v.Operation == policy.NoOperation || v != classifyShell(text) || v.Operation > policy.Read && v.Word == "" {
			t.Fatalf("%q: %+v", text, v)
		}
		if w := classifyShell(text + "\nrm x"); v.Operation == policy.Read && w.Operation == policy.Read && !strings.Contains(text, "<<") && !strings.HasSuffix(text, "\\") {
			t.Fatalf("%q: still a read with rm", text)
		}
	})
}

func benchmark(b *testing.B, read func(string) verdict, unit string) {
	text := strings.Repeat(unit, 1+4096/len(unit))[:4096]
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		read(text)
	}
}

func BenchmarkSQL(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		benchmark(b, classifySQL, "SELECT a.id, count(*) AS n FROM orders a JOIN items i ON i.order_id = a.id WHERE a.state = 'open' UNION ALL ")
	})
	b.Run("worst", func(b *testing.B) {
		benchmark(b, classifySQL, "SELECT `a`, [b], \"c\", $1, E'x\\\\' /* c */ -- #\n + q'x' /*!x*/ + /* y */ \n -- x UNION ALL \r ")
	})
}

// TestGuideNamesTheLimit checks that the guide states how much of a shell text is parsed, in the words of the
// refusal.
func TestGuideNamesTheLimit(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/lanes.md")
	if err != nil || !strings.Contains(string(guide), tooMany.Word) {
		t.Errorf("the guide does not contain %q: %v", tooMany.Word, err)
	}
}
