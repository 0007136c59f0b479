import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("The README")
  struct ReadMeTests {
    private static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func lines(_ path: String) throws -> [String] {
      try String(contentsOf: root.appending(path: path), encoding: .utf8)
        .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("with docs/sdk.md quotes the SDK samples that are compiled and run as a test")
    func samples() throws {
      let source = try Self.lines("Tests/NotificationHubsTests/ReadMeSample.swift")
      let samples = source.split { $0.contains("// end sample") }.compactMap { part in
        part.firstIndex { $0.contains("// begin sample") }.map { part[($0 + 1)...] }
      }
      #expect(samples.count == 2)
      let page = try Self.lines("docs/sdk.md")
      for sample in samples {
        // The test hands its own transport in; a user needs none.
        let wanted = sample.filter { !$0.contains("transport: transport") }
          .map {
            $0.replacing(#/^    /#, with: "")
              .replacing(#/hub: "my-hub",$/#, with: #"hub: "my-hub")"#)
          }
        let start = try #require(wanted.first.flatMap { first in page.firstIndex(of: first) })
        #expect(Array(page[start...].prefix(wanted.count)) == wanted)
      }
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
