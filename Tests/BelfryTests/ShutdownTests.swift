import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  @Suite("Signals that ask a server to end")
  struct ShutdownTests {
    @Test(
      "one that comes at any moment of the start ends the server",
      arguments: [SIGTERM, SIGINT])
    func early(number: Int32) async throws {
      // What comes before the server takes signals ends it as it ends any process; what comes
      // later is answered in order. Nothing is lost between the two.
      for milliseconds in [0, 1, 2, 4, 8, 12, 16, 20, 25, 30, 40, 50] {
        let scratch = try Scratch()
        let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
        try await Task.sleep(for: .milliseconds(milliseconds))  // The moment is what is tested.
        server.signal(number)
        let code = try await server.exitCode()
        #expect(code == 0 || code == 128 + number, "\(milliseconds) ms: \(server.errors)")
      }
    }

    @Test("each of them ends a server in order", arguments: [SIGTERM, SIGINT])
    func orderly(number: Int32) async throws {
      let scratch = try Scratch()
      let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
      _ = try await server.note { $0.contains("serves http://") }
      server.signal(number)
      #expect(try await server.exitCode() == 0)
      #expect(server.errors.contains("stopped"))
    }

    @Test("a log that nobody reads costs no request, shows in health, and holds up no end")
    func unreadLog() async throws {
      // With debug each request writes a line; 64 KiB of them fill the pipe.
      let (server, up) = try await BelfryProcess.up(["--log-level", "debug"], readsErrors: false)
      let client = try up.client()
      let answered = Mutex(0)
      try await withLimit(.seconds(120), "the answers") {
        try await concurrently(Array(0..<1500), width: 8) { number in
          await #expect(throws: NotificationHubError.self) {
            try await client.installation("i\(number)")
          }
          answered.withLock { $0 += 1 }
        }
      }
      #expect(answered.withLock { $0 } == 1500)
      let page = try #require(URL(string: up.hub.url + "/health/ready"))
      try await withLimit(.seconds(60), "the warning") {
        while try await !String(
          decoding: URLSession.shared.data(from: page).0, as: UTF8.self
        ).contains("log-stuck") { try await Task.sleep(for: .milliseconds(50)) }
      }
      server.signal(SIGTERM)
      #expect(try await server.exitCode(within: .seconds(60)) == 0)
    }

    @Test("what nobody had read is there in order when somebody reads")
    func readLater() async throws {
      let scratch = try Scratch()
      let server = try BelfryProcess(
        ["serve", "--json", "--data", scratch.path, "--port", "0"], readsErrors: false)
      _ = try await server.line { $0.hasPrefix("{") }
      server.readErrors()
      #expect(try await server.end() == 0)
      let lines = server.errors.split(separator: "\n")
      #expect(lines.first?.contains("serves http://") == true)
      #expect(lines.last?.hasSuffix("stopped") == true)
    }

    /// A server whose start hangs: nobody writes into the pipe that it takes for its key.
    private func hanging(in scratch: Scratch) async throws -> BelfryProcess {
      let data = scratch.path + "/data"
      #expect(mkdir(data, 0o700) == 0)
      #expect(mkfifo(data + "/master.key", 0o600) == 0)
      let server = try BelfryProcess([
        "serve", "--data", data, "--port", "0", "--shutdown-timeout", "0",
      ])
      // It holds its directory from just before it opens the file.
      try await withLimit(.seconds(60), "the start") {
        while !FileManager.default.fileExists(atPath: data + "/lock") {
          try await Task.sleep(for: .milliseconds(5))
        }
      }
      return server
    }

    @Test("a server that hangs ends within its limit all the same, and says what it waited for")
    func overdue() async throws {
      let scratch = try Scratch()
      let server = try await hanging(in: scratch)
      server.signal(SIGTERM)
      #expect(try await server.exitCode() == 1)
      #expect(server.errors.contains("not stopped within 10 s"))
      #expect(server.errors.contains("waits for the start"))
    }

    @Test("a second signal ends a server that hangs at once")
    func second() async throws {
      let scratch = try Scratch()
      let server = try await hanging(in: scratch)
      server.signal(SIGTERM)
      server.signal(SIGINT)
      #expect(try await server.exitCode() > 128)
      #expect(!server.errors.contains("not stopped"))
    }
  }
}
