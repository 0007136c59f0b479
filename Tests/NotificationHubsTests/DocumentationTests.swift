import Foundation
import Testing

@Suite("The documentation catalogues")
struct DocumentationTests {
  struct Article: CustomTestStringConvertible {
    let url: URL
    /// A folder below Tests with the compiled samples.
    let samples: String
    var testDescription: String { url.lastPathComponent }
  }

  private static let root = URL(filePath: #filePath).resolvingSymlinksInPath()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static let articles: [Article] =
    [
      ("NotificationHubs", "NotificationHubsTests"), ("SecurePush", "SecurePushTests"),
      ("PushDevice", "PushDeviceTests"),
    ].flatMap { library, tests in
      let folder = root.appending(path: "Sources/\(library)/\(library).docc")
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
      return names.filter { $0.hasSuffix(".md") }.sorted().map {
        Article(url: folder.appending(path: $0), samples: "Tests/\(tests)/Samples")
      }
    } + [
      Article(
        url: root.appending(path: "docs/device.md"), samples: "Tests/PushDeviceTests/Samples")
    ]
    + ["swift-server", "swift-app"].map {
      Article(
        url: root.appending(path: "docs/guides/\($0).md"),
        samples: "Tests/NotificationHubsTests/Samples")
    }

  @Test("there are articles")
  func present() { #expect(Self.articles.count >= 13) }

  @Test("every sample of an article is compiled, word for word", arguments: articles)
  func samples(_ article: Article) throws {
    let text = try String(contentsOf: article.url, encoding: .utf8)
    let folder = Self.root.appending(path: article.samples)
    let code = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .map { try String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
      .map(Self.lines)
    for sample in text.matches(of: /```swift\n(.*?)```/.dotMatchesNewlines()) {
      let wanted = Self.lines(String(sample.1))
      #expect(
        code.contains { Self.contains($0, wanted) },
        "not compiled anywhere below \(article.samples):\n\(sample.1)")
    }
  }

  /// Without indentation and empty lines.
  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { !$0.isEmpty }
  }

  private static func contains(_ lines: [String], _ part: [String]) -> Bool {
    guard lines.count >= part.count, !part.isEmpty else { return false }
    return (0...(lines.count - part.count)).contains { start in
      lines[start..<(start + part.count)].elementsEqual(part)
    }
  }
}
