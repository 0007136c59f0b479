import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import Testing

@testable import belfry

extension CommandLineSuite {
  @Suite("What wrong words and wrong files get")
  struct BadInputTests {
    @Test(
      "a server that may have too few files open says how many it needs and does not start",
      arguments: ["serve", "emulator"])
    func tooFewFiles(command: String) async throws {
      let scratch = try Scratch()
      let (code, _, errors) = try await BelfryProcess.run(
        [command, "--data", scratch.path + "/data", "--port", "0"], openFiles: 32)
      #expect(code == 71)
      #expect(errors.contains("32 files open, and a server needs 256 at least"), "\(errors)")
    }

    @Test(
      "wrong words end with 64 and say what is wrong",
      arguments: [
        (["sned"], "did you mean 'send'?"),
        (["hub"], "'hub' needs one of these:"),
        (["hub", "--hub", "news"], "belfry hub create"),
        (["installation", "shw"], "has no 'shw'; did you mean 'show'? It has these:"),
        (["backend", "user", "ad"], "'backend user' has no 'ad'; did you mean 'add'?"),
        (["emulator", "wiat"], "'emulator' has no 'wiat'; did you mean 'wait'?"),
        (
          ["emulator", "frobnicate"],
          "'emulator' has no 'frobnicate'. It has these:\n  belfry emulator wait"
        ),
        (["activity", "--action", "sned"], "did you mean 'send'? It must be one of: send, "),
        (["activity", "--action", "fly"], "--action must be one of: send, sendDirect, "),
        (["hub", "create"], "NAME is missing"),
        (["up", "--prot", "0"], "did you mean '--port'?"),
        (["up", "--port", "70000"], "from 0 to 65535"),
        (["up", "--port"], "--port needs a value"),
        (["send", "--tags", "a"], "say what to send"),
        (["send", "--template", "message=x"], "name the recipients"),
        (["send", "--template", "=x", "--tags", "a"], "NAME=VALUE"),
        (["send", "--template", "m=x", "--tags", "a &&"], "--tags"),
        (["send", "--template", "m=x", "--broadcast"], "which hub?"),
        (["send", "--template", "m=x", "--broadcast", "--tags", "a"], "exclude each other"),
        (["send", "--template", "m=x", "--handle", "0A"], "--apns FILE"),
        (["send", "--apns", "{}", "--handle", "0A", "--at", "+1m"], "not with handles"),
        (["send", "--apns", "{}", "--handles", "[]"], "has no handle"),
        (["send", "--apns", "{}", "--broadcast", "--at", "soon"], "--at must be a time"),
        (["send", "--apns", "{}", "--broadcast", "--test", "--wait"], "waits by itself"),
        (
          ["send", "--apns", #"{"aps":{"alert":}}"#, "--broadcast"],
          "--apns is not valid JSON: a JSON value is expected in line 1, column 17"
        ),
        (
          ["send", "--properties", "{\"ä\": 1,\n  \"b\" 2}", "--broadcast"],
          "--properties is not valid JSON: ':' is expected in line 2, column 7"
        ),
        (
          ["installation", "put", "{\"a\":}"],
          "is not valid JSON: a JSON value is expected in line 1, column 6"
        ),
        (["installation", "patch", "i", "[{\"op\":]"], "in line 1, column 8"),
        (["send", "--wns", "door open", "--broadcast"], "--raw sends the value itself"),
        (["send", "--apns", "{}", "--raw", "--broadcast"], "--raw goes with --wns"),
        (["send", "--apns", #"{"alert":"x"}"#, "--broadcast"], "must be an object with 'aps'"),
        (["send", "--fcm", #"{"data":{}}"#, "--broadcast"], "must be an object with 'message'"),
        (["send", "--template", "m=x", "--raw", "--broadcast"], "--raw goes with"),
        (["backend", "--token-lifetime", "30"], "--token-lifetime must be a time from 1m to 1d"),
        (["notification", "cancel"], "ID is missing"),
        (["config", "--compatibility", "loose"], "must be strict or extended"),
        (["policy", "create", "p", "--rights", "Fly"], "the rights are Listen, Send and Manage"),
        (["send", "--properties", "[]", "--broadcast"], "--properties must be a JSON object"),
        (
          ["send", "--apns", #"{"aps":{}}"#, "--handles", #"["0A", "0B"]"#, "--dry-run"],
          "--dry-run takes one handle or an audience, not a batch"
        ),
        (["installation", "put"], "give the installation as JSON, or with --handle"),
        (["registration", "put"], "give the registration as XML, or with --handle"),
        (["installation", "list", "--expired", "no"], "--expired must be true or false"),
        (["notification", "list", "--state", "Lost"], "'Lost' is not a state; the states are "),
        (["notification", "devices", "1", "--outcome", "Lost"], "'Lost' is not an outcome"),
        (["statistics", "--step", "90"], "--step must be a multiple of 60 seconds"),
        (["sas", "--endpoint", "push"], "--endpoint must be an address with its scheme"),
        (["health", "--url", "nowhere"], "--url must be an address such as"),
        (["phone", "--secure"], "--secure needs the user who signs in: --user NAME"),
        (["emulator", "--port", "9400"], "--port must be 0, which picks free ports"),
        (["emulator", "--proxy", "65536"], "--proxy must be a whole number from 0 to 65535"),
        (["emulator", "--allow", "example.com"], "--allow goes with --proxy"),
        (["emulator", "--proxy", "0", "--allow", "example.com:443"], "give no port"),
        (
          ["up", "--emulator", "http://127.0.0.1:9400", "--proxy", "0"],
          "--proxy and --accept-any-credential are of the emulator itself"
        ),
        (["emulator", "wait"], "--to is missing"),
        (["operator", "add", "ann", "--roles", "king"], "'king' is not a list of roles"),
        (["operator", "add", "email:ann", "--roles", "*=viewer"], "'email:ann' is not a user"),
        (["credential", "set", "palm"], "not served by this version"),
        (["config", "extra"], "unexpected 'extra'"),
        (["up", "--hub", "1 x"], "is no name of a hub"),
        (["up", "--topic", "a b"], "is not a bundle id"),
      ])
    func wrongWords(words: [String], complaint: String) async throws {
      let (code, _, errors) = try await BelfryProcess.run(words)
      #expect(code == 64)
      #expect(errors.contains(complaint), "\(errors)")
    }

    @Test(
      "help on a group lists its commands, with either word",
      arguments: [
        (["hub", "help"], "belfry hub create "), (["hub", "--help"], "belfry hub create "),
        (["backend", "user", "help"], "belfry backend user add "),
        (["emulator", "help"], "USAGE  belfry emulator "),
      ])
    func groupHelp(words: [String], says: String) async throws {
      let (code, output, errors) = try await BelfryProcess.run(words)
      #expect(code == 0 && output.contains(says) && errors.isEmpty, "\(output) \(errors)")
    }

    @Test("the help on the activity log names the actions")
    func actions() {
      let page = ActivityCommand.help.page
      #expect(ActivityAction.allCases.filter { !page.contains($0.rawValue) } == [])
    }

    @Test("script/package exits with 64 for invalid arguments, as the commands do")
    func packageWords() throws {
      let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      for words in [["frobnicate"], ["--binary"]] {
        let process = Process()
        process.executableURL = root.appending(path: "script/package")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 64)
      }
    }

    @Test("the list of all commands says what an exit code means")
    func exitCodes() async throws {
      let (code, output, _) = try await BelfryProcess.run(["help", "all"])
      #expect(code == 0)
      let lines = output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
      #expect(
        lines.contains { $0.hasPrefix("64 ") && $0.contains("invalid arguments or configuration") })
      #expect(lines.contains { $0.hasPrefix("70 ") && $0.hasSuffix("a defect in Belfry") })
    }

    @Test("every command explains itself", arguments: CommandTable.all.map { $0.help.words })
    func helpPages(words: [String]) async throws {
      let (code, output, _) = try await BelfryProcess.run(words + ["--help"])
      #expect(code == 0)
      #expect(output.contains("USAGE  belfry " + words.joined(separator: " ")))
      #expect(output.contains("EXAMPLES"))
    }

    @Test("help pages have at most 100 columns", arguments: CommandTable.all.map { $0.help })
    func helpWidth(help: CommandHelp) {
      let lines = help.page.split(separator: "\n").prefix { $0 != "EXAMPLES" }
      #expect(lines.filter { $0.count > 100 }.isEmpty)
    }

    @Test(
      "a bad configuration is refused with key, file and line before any socket opens",
      arguments: [
        ("{\n  \"port\": 99999\n}", "belfry.json:2: 'port'"),
        ("{\n  \"prot\": 1\n}", "did you mean 'port'?"),
        ("{\n  // fine\n  \"port\": 1,\n  \"port\": 2\n}", "stands in line 3 already"),
        ("{\n\"hubs\": [\n{\"name\": 7}\n]}", "belfry.json:3: 'name'"),
        ("{\n\"hubs\": [\n{\"ttl\": 7}\n]}", "unknown key 'ttl'"),
        ("{\n\"address\": [1]\n}", "belfry.json:2: 'address': must be"),
        ("{ \"data\": \"x\" ", "belfry.json:1: ',' or '}' is wanted"),
        ("[]", "must be an object, not a list"),
        ("{\n\"hubs\": [{\n\"name\": \"1bad\"}]}", "belfry.json:3: 'name': '1bad' is no name"),
        ("{\n\"hubs\": [{\"name\": \"ok\"},\n{\"name\": \"OK\"}]}", "belfry.json:3: the hub 'OK'"),
        (
          "{\n\"hubs\": [{\"name\": \"a\",\n\"apns\": {}}]}",
          "belfry.json:3: 'apns': give either a .p8 key"
        ),
        (
          "{\"hubs\": [{\"name\": \"a\",\n\"policies\": [{\"name\": \"a b\", \"rights\": [\"Send\"]}]}]}",
          "belfry.json:2: 'name'"
        ),
        ("{\n\"masterKey\": \"xx\"}", "belfry.json:2: 'masterKey'"),
        ("{\n\"trust\": [\"/nope.pem\"]}", "belfry.json:2: 'trust': /nope.pem"),
        ("{\n\"address\": \"nope\"}", "belfry.json:2: 'address': must be an IP address"),
        (
          "{\"hubs\": [{\"name\": \"a\", \"policies\": [{\"name\": \"p\", \"rights\": [\"Fly\"]}]}]}",
          "'Fly' is not a right"
        ),
      ])
    func badConfiguration(text: String, complaint: String) async throws {
      let scratch = try Scratch()
      let file = try scratch.file("belfry.json", text)
      let (code, _, errors) = try await BelfryProcess.run([
        "serve", "--config", file, "--data", scratch.path + "/data", "--port", "0",
      ])
      #expect(code == 64)
      #expect(errors.contains(complaint), "\(errors)")
    }

    @Test("a file that cannot be read is reported in the system's words")
    func unreadableFiles() async throws {
      let scratch = try Scratch()
      let missing = scratch.path + "/missing"
      for (words, complaint) in [
        (["serve", "--config", missing], "\(missing): cannot be read: No such file or directory"),
        (["serve", "--config", scratch.path], "cannot be read: Is a directory"),
        (
          ["installation", "put", missing, "--hub", "h", "--data", scratch.path],
          "\(missing) cannot be read: No such file or directory"
        ),
      ] {
        let (code, _, errors) = try await BelfryProcess.run(words)
        #expect(code == 64)
        #expect(errors.contains(complaint), "\(errors)")
      }
      let file = try scratch.file("file", "")
      let (_, _, errors) = try await BelfryProcess.run(["up", "--data", file + "/below"])
      #expect(errors.contains("cannot be made: Not a directory"), "\(errors)")
    }

    @Test("a port in use is named, with what to do")
    func portInUse() async throws {
      let (process, up) = try await BelfryProcess.up()
      let port = try #require(up.hub.url.split(separator: ":").last)
      let scratch = try Scratch()
      let (code, _, errors) = try await BelfryProcess.run([
        "serve", "--data", scratch.path, "--port", String(port),
      ])
      #expect(code == 69)
      #expect(errors.contains("port \(port)") && errors.contains("another program"))
      #expect(try await process.end() == 0)
    }

    @Test(
      "a port in use leaves no new data directory behind",
      arguments: [
        ["serve", "--port"], ["serve", "--port", "0", "--metrics-port"],
        ["up", "--emulator", "http://127.0.0.1:9400", "--port"],
        ["up", "--port", "0", "--proxy"],
      ])
    func nothingIsLeftByTakenPort(words: [String]) async throws {
      let taken = try ListeningSocket(host: "127.0.0.1", port: 0)
      defer { close(taken.number) }
      let scratch = try Scratch()
      let run = try await BelfryProcess.run(
        words + ["\(taken.port)", "--data", "data"], in: scratch.path)
      #expect(run.code == 69 && run.errors.contains("port \(taken.port): another"), "\(run)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == [])
    }

    @Test("a second `belfry up` is told how to run beside the first")
    func secondUp() async throws {
      let (process, up) = try await BelfryProcess.up()
      let port = try #require(up.hub.url.split(separator: ":").last)
      let (code, _, errors) = try await BelfryProcess.run([
        "up", "--port", String(port), "--https-port", "0", "--backend-port", "0", "--emulator",
        up.emulator.control,
      ])
      #expect(code == 69)
      #expect(errors.contains("`belfry up --port 0`"), "\(errors)")
      #expect(try await process.end() == 0)
    }

    @Test("a second server on the same data directory is refused")
    func secondServer() async throws {
      let scratch = try Scratch()
      let (process, _) = try await BelfryProcess.up(["--data", scratch.path])
      let (code, _, errors) = try await BelfryProcess.run([
        "serve", "--data", scratch.path, "--port", "0",
      ])
      #expect(code == 69)
      #expect(errors.contains("another Belfry serves"))
      #expect(try await process.end() == 0)
    }

    @Test(
      "what words or settings prevent leaves nothing behind",
      arguments: [
        (["hub", "create", "bad:name"], "is no name of a hub"),
        (["hub", "create", "news", "--data", "data", "--ttl", "1s"], "--ttl"),
        (
          ["serve", "--data", "data", "--tls-self-signed", "--metrics-token", "short"],
          "at least 16 characters"
        ),
        (
          ["serve", "--data", "data", "--tls-self-signed", "--tls-key", "key.pem"],
          "tlsCertificate"
        ),
        (
          ["serve", "--data", "data", "--tls-certificate", "no.pem", "--tls-key", "no.pem"],
          "no.pem cannot be read"
        ),
        (
          [
            "serve", "--data", "data", "--port", "18443", "--tls-port", "18443",
            "--tls-self-signed",
          ],
          "--tls-port and --port are both 18443: each needs a port of its own"
        ),
        (
          ["serve", "--data", "data", "--port", "18443", "--metrics-port", "18443"],
          "--metrics-port and --port are both 18443"
        ),
        (
          ["serve", "--data", "data", "--port", "8443", "--tls-self-signed"],
          "'tlsPort' (default) and --port are both 8443"
        ),
        (
          ["up", "--data", "data", "--port", "18443", "--https-port", "18443"],
          "--https-port and --port are both 18443"
        ),
        (
          ["up", "--data", "data", "--https-port", "9443"],
          "--https-port and the stand-in of apns are both 9443"
        ),
        (
          ["serve", "--data", "data", "--port", "0", "--operators", "/etc/passwd"],
          "/etc/passwd"
        ),
      ])
    func nothingIsLeft(words: [String], complaint: String) async throws {
      let scratch = try Scratch()
      let environment = ["BELFRY_HOME": scratch.path]
      let run = try await BelfryProcess.run(words, environment: environment, in: scratch.path)
      #expect(run.code == 64 && run.errors.contains(complaint), "\(run)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == [])
    }

    @Test(
      "two listeners with one port go together if no address is that of both",
      arguments: [
        ("127.0.0.1", "127.0.0.1", false), ("localhost", "127.0.0.1", false),
        ("0.0.0.0", "127.0.0.1", false), ("::1", "::", false), ("::", "127.0.0.1", false),
        ("0.0.0.0", "::", false), ("0.0.0.0", "::1", true), ("127.0.0.1", "127.0.0.2", true),
        ("::1", "127.0.0.1", true),
      ])
    func overlap(one: String, two: String, goesTogether: Bool) {
      for hosts in [[one, two], [two, one]] {
        let listeners = hosts.map { PlannedListener("--port", host: $0, port: 18_561) }
        #expect(((try? PlannedListener.checkApart(listeners)) != nil) == goesTogether)
      }
    }

    @Test("a server is told which command works on its directory")
    func claimed() async throws {
      let scratch = try Scratch()
      let data = try DataDirectory.make(at: scratch.path + "/data")
      for (purpose, text) in [
        (DirectoryClaim.Purpose.rotatingKey, "`belfry key rotate` works on \(data.path)"),
        (.moving, "`belfry move` works on"), (.serving, "another Belfry serves from"),
      ] {
        let claim = try data.claim(for: purpose)
        let run = try await BelfryProcess.run(["serve", "--data", data.path, "--port", "0"])
        #expect(run.code == 69 && run.errors.contains(text), "\(run)")
        withExtendedLifetime(claim) {}
      }
    }

    @Test("a file that is no database is left alone and named")
    func noDatabase() async throws {
      let scratch = try Scratch()
      let text = String(repeating: "this is no database. ", count: 400)
      let file = try scratch.file("belfry.sqlite", text)
      _ = try scratch.file("master.key", Data(repeating: 7, count: 32).base64EncodedString())
      let (code, _, errors) = try await BelfryProcess.run([
        "serve", "--data", scratch.path, "--port", "0",
      ])
      #expect(code == 1)
      #expect(errors.contains("damaged") || errors.contains("not a database"), "\(errors)")
      #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
    }

    @Test("another master key than the database's is refused")
    func otherMasterKey() async throws {
      let scratch = try Scratch()
      let made = try await BelfryProcess.run(["hub", "create", "h", "--data", scratch.path])
      #expect(made.code == 0, "\(made.errors)")
      let key = Data(repeating: 9, count: 32).base64EncodedString()
      let (code, _, errors) = try await BelfryProcess.run(
        ["hub", "list", "--data", scratch.path], environment: ["BELFRY_MASTER_KEY": key])
      #expect(code == 1)
      #expect(errors.contains("master key"), "\(errors)")
    }

    @Test("a hub that cannot be reached ends with 69")
    func unreachable() async throws {
      let (code, _, errors) = try await BelfryProcess.run([
        "installation", "get", "x", "--hub", "h", "--connection",
        "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=a;SharedAccessKey=b",
      ])
      #expect(code == 69)
      #expect(errors.contains("cannot reach the hub"))
    }
  }
}
