import Foundation
import HTTPServer
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("belfry health")
  struct HealthCommandTests {
    @Test("asks the server of a directory, or the one at an address")
    func ready() async throws {
      let scratch = try Scratch()
      let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
      let started = try await server.note { $0.contains("serves http://") }
      let url = String(try #require(started.firstMatch(of: #/http://[^ ]+/#)).output)
      for words in [["--data", scratch.path], ["--url", url], ["--url", url + "/"]] {
        let (code, output, errors) = try await BelfryProcess.run(["health"] + words)
        #expect(code == 0, "\(errors)")
        #expect(output == "ready at \(url)\n")
      }
      let json = try await BelfryProcess.run(["health", "--url", url, "--json"])
      #expect(json.output.contains(#""status":"ready""#))
      #expect(try await server.end() == 0)
      let gone = try await BelfryProcess.run(["health", "--data", scratch.path])
      #expect(gone.code == 69)
      #expect(gone.errors.contains("--url URL"), "\(gone.errors)")
      let silent = try await BelfryProcess.run(["health", "--url", url])
      #expect(silent.code == 69)
      #expect(silent.errors.contains("\(url) does not answer"), "\(silent.errors)")
    }

    @Test("says so where the server cannot do its work, or something else answers")
    func unready() async throws {
      for (status, body, message) in [
        (
          503, #"{"status":"unready","reasons":[{"code":"stopping","text":"x"}],"warnings":[]}"#,
          "the server is unready"
        ),
        (200, "hello", "answered 200, but it is not a Belfry server"),
        (
          503,
          #"{"status":"un\u001b[2Jready","reasons":[{"code":"stopping","text":"x\u009b"}],"warnings":[]}"#,
          "the server is un?[2Jready"
        ),
      ] {
        let reply = HTTPResponse(HTTPStatus(rawValue: status), text: body)
        let server = try HTTPListener(HTTPConfiguration(), handler: ClosureHandler { _ in reply })
        let words = ["health", "--url", "http://127.0.0.1:\(server.port)"]
        let (code, output, errors) = try await BelfryProcess.run(words)
        await server.stop(within: .zero)
        #expect(code == 1)
        #expect(errors.contains(message), "\(errors)")
        #expect(!(output + errors).contains("\u{1B}") && !output.contains("\u{9B}"))
        #expect(output.contains("stopping: x") == (status == 503))
      }
    }
  }
}
