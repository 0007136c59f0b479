import Foundation
import HubTesting
import Testing

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
  }
}
