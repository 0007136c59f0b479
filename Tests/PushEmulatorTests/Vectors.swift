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
    let publicSPKI: String
    let privatePKCS8: String

    enum CodingKeys: String, CodingKey {
      case publicSPKI = "public_spki_pem"
      case privatePKCS8 = "private_pkcs8_pem"
    }
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
    let bodyText: String?
    let bodyCount: Int?
    let expect: Expectation?

    enum CodingKeys: String, CodingKey {
      case name, method, path, headers, expect
      case bodyText = "body_utf8"
      case bodyCount = "body_bytes"
    }

    var testDescription: String { name ?? "base" }
  }

  struct Expectation: Decodable, Sendable {
    let status: Int
    let reason: String?
    let timestamp: Int64?
  }

  struct Tokens: Decodable, Sendable {
    let kid: String
    let teamID: String
    let cases: [TokenCase]

    enum CodingKeys: String, CodingKey {
      case kid, cases
      case teamID = "team_id"
    }
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
  let requests: Requests
  let tokens: Tokens

  enum CodingKeys: String, CodingKey {
    case keys
    case requests = "apns_request_cases"
    case tokens = "apns_provider_jwt"
  }
}
