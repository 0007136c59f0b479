import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Which hub a command works on")
  struct HubTargetTests {
    /// A working directory, and a home of its own for the notes of `belfry up`.
    private struct Place {
      let here: Scratch
      let home: Scratch
      var environment: [String: String]

      init() throws {
        here = try Scratch()
        home = try Scratch()
        environment = ["BELFRY_HOME": home.path]
      }

      func run(_ words: String...) async throws -> (code: Int32, output: String, errors: String) {
        try await BelfryProcess.run(words, environment: environment, in: here.path)
      }

      func up() async throws -> (process: BelfryProcess, line: UpLine) {
        let process = try BelfryProcess(
          ["up", "--json", "--port", "0"], environment: environment, in: home.path)
        let line = try await process.line { $0.hasPrefix("{") }
        return (process, try JSONDecoder().decode(UpLine.self, from: Data(line.utf8)))
      }
    }

    @Test("with only a `belfry up` every command finds it, and changes say where they go")
    func up() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      for words in [
        ["hub", "list"], ["policy", "list"], ["credential", "list"], ["installation", "list"],
        ["registration", "list"], ["audience", "count"], ["channel", "list"],
      ] {
        let seen = try await BelfryProcess.run(
          words, environment: place.environment, in: place.here.path)
        #expect(seen.code == 0, "\(words): \(seen.errors)")
        #expect(seen.errors.contains("from the running `belfry up`"), "\(words): \(seen.errors)")
      }
      let made = try await place.run("policy", "create", "p", "--rights", "Send")
      #expect(made.errors.contains("to hub demo at \(up.data), from the running `belfry up`"))
      let sent = try await place.run("send", "--template", "message=x", "--broadcast")
      #expect(
        sent.errors.contains("to hub demo at \(up.hub.url), from the running `belfry up`"),
        "\(sent.errors)")
      #expect(try await process.end() == 0)
    }

    @Test("a new hub is made here, not in the directory of a `belfry up`, and the hints lead to it")
    func create() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      let made = try await place.run("hub", "create", "shop")
      #expect(made.code == 0, "\(made.errors)")
      #expect(made.errors.contains("to hub shop at \(place.here.path)/belfry-data"))
      #expect(!(try await place.run("hub", "list", "--data", up.data)).output.contains("shop"))
      let other = try Scratch()
      let named = try await place.run("hub", "create", "news", "--data", other.path + "/a b")
      for line in [
        "credential set apns --data '\(other.path)/a b' --hub news",
        "serve --data '\(other.path)/a b'",
        "sas --connection-string --data '\(other.path)/a b' --hub news",
      ] {
        #expect(named.output.contains("belfry \(line)"), "\(named.output)")
      }
      let key = try await place.run(
        "sas", "--connection-string", "--endpoint", "push.example.com", "--data",
        other.path + "/a b")
      #expect(key.code == 64)
      #expect(key.errors.contains("with its scheme, such as https://push.example.com"), "\(key)")
      #expect(try await process.end() == 0)
    }

    @Test("beside other hubs of a `belfry up` its own is meant")
    func ownHub() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      #expect(try await place.run("hub", "create", "second", "--data", up.data).code == 0)
      let key = try await place.run("sas", "--connection-string")
      #expect(key.code == 0, "\(key.errors)")
      let sent = try await place.run("send", "--template", "message=x", "--broadcast")
      #expect(sent.code == 0 && sent.errors.contains("to hub \(up.hub.name) at"), "\(sent)")
      #expect(try await process.end() == 0)
      // Without it nobody knows.
      let data = try Scratch().path + "/data"
      for hub in ["one", "two"] {
        #expect(try await place.run("hub", "create", hub, "--data", data).code == 0)
      }
      let unsaid = try await place.run("credential", "list", "--data", data)
      #expect(unsaid.code == 64 && unsaid.errors.contains("--hub is missing; there are one, two"))
    }

    @Test("a port that is taken by another `belfry up` is told with its hub and its data")
    func holder() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      let port = try #require(URL(string: up.hub.url)?.port)
      let second = try await place.run(
        "up", "--port", "\(port)", "--https-port", "0", "--backend-port", "0", "--emulator",
        up.emulator.control)
      #expect(second.code == 69)
      #expect(
        second.errors.contains(
          "It is the `belfry up` of \(up.hub.url) with its data in \(up.data)"),
        "\(second.errors)")
      #expect(try await process.end() == 0)
    }

    @Test("what lies here and others may write to is not taken unless it is named")
    func shared() async throws {
      let place = try Place()
      let data = place.here.path + "/belfry-data"
      #expect(try await place.run("hub", "create", "shop", "--data", data).code == 0)
      chmod(data, 0o777)
      for words in [["hub", "list"], ["health"], ["check"], ["serve", "--port", "0"]] {
        let run = try await BelfryProcess.run(
          words, environment: place.environment, in: place.here.path)
        #expect(
          run.code == 64
            && run.errors.contains(
              "other users may write to ./belfry-data. It was found in this directory")
            && run.errors.contains("pass --data belfry-data to use it"), "\(words): \(run)")
      }
      #expect(try await place.run("hub", "list", "--data", "belfry-data").code == 0)
      chmod(data, 0o700)
      chmod(try place.here.file("belfry.json", #"{"metricsPort": 1}"#), 0o666)
      let file = try await place.run("hub", "list")
      #expect(
        file.code == 64 && file.errors.contains("./belfry.json. It was found in this directory")
          && file.errors.contains("pass --config belfry.json to use it"), "\(file)")
      let named = try await place.run("hub", "list", "--config", "belfry.json")
      #expect(named.code == 0 && named.output.contains("shop"), "\(named)")
    }

    @Test("a send that finds nobody says where to look, in the hub that it was sent to")
    func nobody() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      let sent = try await place.run(
        "send", "--template", "message=x", "--tags", "a && b", "--wait", "--data", up.data)
      #expect(sent.code == 1)
      #expect(
        sent.errors.contains("belfry audience count --tags 'a && b' --data \(up.data)"),
        "\(sent.errors)")
      #expect(sent.errors.contains("belfry installation list --data \(up.data)"))
      let plain = try await place.run(
        "send", "--template", "message=x", "--broadcast", "--data", up.data)
      #expect(plain.output.contains("--data \(up.data)\n"), "\(plain.output)")
      #expect(try await process.end() == 0)
    }

    @Test("the data directory here comes before a `belfry up`, also when its server is stopped")
    func here() async throws {
      let place = try Place()
      let (process, up) = try await place.up()
      let made = try await place.run("hub", "create", "shop", "--data", "belfry-data")
      #expect(made.code == 0, "\(made.errors)")
      let list = try await place.run("hub", "list")
      #expect(list.output.contains("shop") && list.errors.contains("from ./belfry-data"))
      for words in [["audience", "count"], ["registration", "list"], ["export", "devices.txt"]] {
        let seen = try await BelfryProcess.run(
          words, environment: place.environment, in: place.here.path)
        #expect(seen.code == 0 && seen.errors.contains("hubs at \(place.here.path)/belfry-data"))
      }
      for words in [
        ["send", "--template", "message=x", "--broadcast"], ["phone"],
        ["notification", "cancel", "some-long-id"], ["notification", "show", "id", "--wait"],
      ] {
        let seen = try await BelfryProcess.run(
          words, environment: place.environment, in: place.here.path)
        #expect(seen.code == 69, "\(words): \(seen.errors)")
        #expect(seen.errors.contains("no server runs on \(place.here.path)/belfry-data"))
        #expect(seen.errors.contains("--data \(up.data)"), "\(seen.errors)")
      }
      let key = try await place.run("sas", "--connection-string")
      #expect(key.code == 64 && key.output.isEmpty, "\(key.output)")
      #expect(try await process.end() == 0)
    }

    @Test("a variable that names another hub than the directory stops what changes or sends")
    func elsewhere() async throws {
      var place = try Place()
      let other = try Scratch()
      _ = try await place.run("hub", "create", "shop", "--data", "belfry-data")
      _ = try await place.run("hub", "create", "news", "--data", other.path)
      place.environment["BELFRY_DATA"] = other.path
      let change = try await place.run("policy", "create", "p", "--rights", "Send")
      #expect(change.code == 64)
      #expect(change.errors.contains("BELFRY_DATA names \(other.path)"), "\(change.errors)")
      #expect(change.errors.contains("--data \(place.here.path)/belfry-data"))
      let look = try await place.run("hub", "list")
      #expect(look.code == 0 && look.output.contains("news"))
      let meant = try await place.run(
        "policy", "create", "p", "--rights", "Send", "--data", other.path)
      #expect(meant.code == 0, "\(meant.errors)")
      #expect(meant.errors.contains("to hub news at \(other.path), from --data"))
      place.environment["BELFRY_DATA"] = nil
      place.environment["BELFRY_HUB"] = "h"
      place.environment["BELFRY_CONNECTION_STRING"] =
        "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=a;SharedAccessKey=b"
      let sent = try await place.run("send", "--template", "message=x", "--broadcast")
      #expect(sent.code == 64 && sent.errors.contains("BELFRY_CONNECTION_STRING names"))
      let policies = try await place.run("policy", "list")
      #expect(
        policies.code == 64 && policies.errors.contains("Pass --data DIR"), "\(policies.errors)")
      let hubs = try await place.run("hub", "list")
      #expect(hubs.code == 69 && hubs.errors.contains("cannot reach the hub"), "\(hubs.errors)")
      let deleted = try await place.run("hub", "delete", "shop", "--yes")
      #expect(deleted.code == 64 && deleted.errors.contains("BELFRY_CONNECTION_STRING names"))
    }

    @Test("the end of one `belfry up` leaves the other to be found, with its own emulator")
    func two() async throws {
      let place = try Place()
      let (first, one) = try await place.up()
      let (second, two) = try await place.up()
      let found = try await place.run("hub", "list")
      #expect(found.errors.contains(two.data))
      let phone = try BelfryProcess(
        ["phone", "--data", one.data, "--count", "1", "--json", "--tags", "t"],
        environment: place.environment, in: place.here.path)
      _ = try await phone.line { $0.contains("installationId") }
      let sent = try await place.run(
        "send", "--template", "message=x", "--tags", "t", "--wait", "--data", one.data)
      #expect(sent.code == 0, "\(sent.errors)")
      #expect(try await phone.exitCode() == 0)
      #expect(try await second.end() == 0)
      let left = try await place.run("hub", "list")
      #expect(left.errors.contains(one.data), "\(left.errors)")
      #expect(try await first.end() == 0)
      let none = try await place.run("hub", "list")
      #expect(none.code == 64 && none.errors.contains("which hub?"))
      #expect(none.errors.contains("Give --connection STRING, or --data DIR"), "\(none.errors)")
    }
  }
}
