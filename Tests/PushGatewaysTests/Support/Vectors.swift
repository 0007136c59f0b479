import Foundation
import Testing

/// The published vectors that concern the services with HTTP/1.1 (`Fixtures/http11.json`).
struct Vectors: Decodable {
  struct Form: Decodable, CustomTestStringConvertible {
    let name: String
    /// Pairs of name and value.
    let fields: [[String]]
    let body: String
    var testDescription: String { name }
  }

  /// A row of the table of replies.
  struct Row: Decodable, CustomTestStringConvertible {
    /// A number, or a word for a group or a stage: `4xx`, `token 400|401`, `error`.
    let status: String
    let reason, retry, handle, outcome: String
    var testDescription: String { "\(status) \(reason)" }

    enum CodingKeys: CodingKey { case status, reason, retry, handle, outcome }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      if let number = try? container.decode(Int.self, forKey: .status) {
        status = String(number)
      } else {
        status = try container.decode(String.self, forKey: .status)
      }
      reason = try container.decode(String.self, forKey: .reason)
      retry = try container.decode(String.self, forKey: .retry)
      handle = try container.decode(String.self, forKey: .handle)
      outcome = try container.decode(String.self, forKey: .outcome)
    }
  }

  struct Answer: Decodable, CustomTestStringConvertible {
    let pns, body, outcome: String
    let status: UInt16
    let remove: Bool?
    let sentTo, newHandle: String?
    var testDescription: String { "\(pns) \(status) \(body)" }
  }

  struct Checksum: Decodable, CustomTestStringConvertible {
    let data: [String: String]
    let md5Base64: String
    var testDescription: String { "\(data.keys.sorted())" }
  }

  struct Signature: Decodable, CustomTestStringConvertible {
    let name, method, url, secret, sign: String
    let params: [String: String]
    var testDescription: String { name }
  }

  let forms: [Form]
  let admMd5: [Checksum]
  let baiduSign: [Signature]
  let replies: [Answer]
  let outcomes: [String: [Row]]

  static func read() throws -> Vectors {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/http11.json")
    return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
  }

  static func forms() throws -> [Form] { try read().forms }
  static func replies(_ service: String) throws -> [Answer] {
    try read().replies.filter { $0.pns == service }
  }
  static func rows(_ service: String) throws -> [Row] { try #require(read().outcomes[service]) }
}
