import Foundation

/// One scenario recorded from the real service (docs/recordings.md).
struct Recording: Decodable {
  struct Call: Decodable {
    let path: String
    let status: Int
    let headers: [String: String]
    let contentHeaders: [String: String]
    let content: String?

    enum CodingKeys: String, CodingKey {
      case path = "RequestUriPath"
      case status = "StatusCode"
      case headers = "Headers"
      case contentHeaders = "ContentHeaders"
      case content = "Content"
    }
  }

  let calls: [Call]

  enum CodingKeys: String, CodingKey {
    case calls = "HttpCalls"
  }

  init(named name: String) throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/\(name).http")
    self = try JSONDecoder().decode(Recording.self, from: Data(contentsOf: file))
  }

  /// Replaces what differs from call to call, as docs/recordings.md says, and puts the entries of a
  /// feed in an order.
  static func normalized(_ text: String) -> String {
    let plain = text.replacing(/https?:\/\/[^\/]+\//, with: "https://HOST/")
      .replacing(/[0-9a-f]{32}-\d{14}-\d+-\d+/, with: "NOTIFICATION")
      .replacing(/[0-9a-f]{32}_\d{14}_\d+_\d+_QNHQueue[0-9a-f]{32}-S\d+/, with: "SCHEDULED")
      .replacing(/\b\d+-\d+-\d+(?=[?<])/, with: "REGISTRATION")
      .replacing(/<(published|updated)>[^<]*</, with: "<TIME<")
      .replacing(/continuationtoken=[^&"<]+/, with: "continuationtoken=TOKEN")
      .replacing(
        /TrackingId:[0-9a-fA-F-]{36}_G\d+,TimeStamp:\d+\/\d+\/\d{4} \d+:\d\d:\d\d [AP]M/,
        with: "TRACKING")
    guard plain.hasPrefix("<feed") else { return plain }
    let end = "</feed>"
    let parts = plain.dropLast(plain.hasSuffix(end) ? end.count : 0)
      .components(separatedBy: "<entry ")
    return ([parts[0]] + parts.dropFirst().sorted()).joined(separator: "\n<entry ")
  }
}
