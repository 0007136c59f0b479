import Foundation

@testable import NotificationHubs

/// Replies of the real service, as recorded.
struct Recording: Decodable {
  struct Call: Decodable {
    let uri: String
    let content: String?

    enum CodingKeys: String, CodingKey {
      case uri = "RequestUriPath"
      case content = "Content"
    }
  }

  let calls: [Call]

  enum CodingKeys: String, CodingKey { case calls = "HttpCalls" }

  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Fixtures/recordings")

  static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  init(_ name: String) throws {
    let data = try Data(contentsOf: Self.folder.appendingPathComponent(name))
    self = try JSONDecoder().decode(Self.self, from: data)
  }

  /// Documents of every recording whose root and some text in it are these.
  static func documents(root: String, with text: String) throws -> [String] {
    try names().flatMap { try Recording($0).calls.compactMap(\.content) }
      .filter { $0.hasPrefix("<\(root)") && $0.contains(text) }
  }
}

extension String {
  /// The text between the first occurrence of `start` and the next of `end`.
  func between(_ start: String, _ end: String) -> String? {
    guard let head = range(of: start),
      let tail = self[head.upperBound...].range(of: end)
    else { return nil }
    return String(self[head.upperBound..<tail.lowerBound])
  }

  /// Without what the clock decides.
  var withoutTimes: String {
    replacing(#/20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/#, with: "TIME")
  }

  var unescaped: String { replacing("&amp;", with: "&") }
}
