import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("The README")
  struct ReadMeTests {
    private static let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func lines(_ path: String) throws -> [String] {
      try String(contentsOf: root.appending(path: path), encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("quotes the SDK sample that is compiled and run as a test")
    func sample() throws {
      let source = try Self.lines("Tests/NotificationHubsTests/ReadMeSample.swift")
      let begin = try #require(source.firstIndex { $0.contains("// begin sample") })
      let end = try #require(source.firstIndex { $0.contains("// end sample") })
      // The test hands its own transport in; a user needs none.
      let wanted = source[(begin + 1)..<end].filter { !$0.contains("transport: transport") }
        .map {
          $0.replacing(#/^    /#, with: "").replacing(#/hub: "my-hub",$/#, with: #"hub: "my-hub")"#)
        }
      let readme = try Self.lines("README.md")
      let start = try #require(readme.firstIndex { $0 == "let client = NotificationHubClient(" })
      #expect(Array(readme[start..<(start + wanted.count)]) == wanted)
    }

    @Test("names only commands that exist")
    func commands() async throws {
      let readme = try Self.lines("README.md").joined(separator: "\n")
      for script in ["script/demo", "script/test", "script/bootstrap", "script/bench"] {
        #expect(FileManager.default.isExecutableFile(atPath: Self.root.path + "/" + script))
      }
      for match in readme.matches(of: #/(?m)^belfry ([a-z]+(?: (?:create|set|show|list))?)/#) {
        let words = match.1.split(separator: " ").map(String.init)
        let (code, _, errors) = try await BelfryProcess.run(words + ["--help"])
        #expect(code == 0, "\(words): \(errors)")
      }
    }
  }
}
