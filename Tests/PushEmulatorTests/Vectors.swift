import Foundation
import Testing

/// The published APNs vectors (`Fixtures/apns-vectors.json`).
struct Vectors: Decodable, Sendable {
  static let shared: Vectors = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/apns-vectors.json")
    do {
      return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
    } catch {
      fatalError("the fixture cannot be read: \(error)")
    }
  }()

  struct Key: Decodable, Sendable {
    let public_spki_pem: String
    let private_pkcs8_pem: String
  }

  struct Requests: Decodable, Sendable {
    let base: Case
    let cases: [Case]
    let devices: [String: Value]
  }

  /// A request, or what differs from the base; `null` removes a header.
  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    let name: String?
    let method: String?
    let path: String?
    let headers: [String: String?]?
    let body_utf8: String?
    let body_bytes: Int?
    let expect: Expectation?

    var testDescription: String { name ?? "base" }
  }

  struct Expectation: Decodable, Sendable {
    let status: Int
    let reason: String?
    let timestamp: Int64?
  }

  struct Tokens: Decodable, Sendable {
    let kid: String
    let team_id: String
    let cases: [TokenCase]
  }

  struct TokenCase: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let token: String
    let now: Int64
    let expect: String

    var testDescription: String { name }
  }

  enum Value: Decodable, Sendable {
    case text(String)
    case number(Int64)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int64.self) {
        self = .number(number)
      } else {
        self = .text(try container.decode(String.self))
      }
    }
  }

  let keys: [String: Key]
  let apns_request_cases: Requests
  let apns_provider_jwt: Tokens
}
