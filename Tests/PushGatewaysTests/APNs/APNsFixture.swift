import Foundation
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

/// The published vectors that concern this gateway.
struct APNsFixture: Decodable {
  struct Row: Decodable, CustomTestStringConvertible {
    /// A number, or a word for a group of them.
    let status: Status
    let reason, retry, handle, outcome: String
    var testDescription: String { "\(status.word) \(reason)" }
  }

  struct Status: Decodable {
    let word: String
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let number = try? container.decode(Int.self) {
        word = String(number)
      } else {
        word = try container.decode(String.self)
      }
    }
  }

  struct Answer: Decodable, CustomTestStringConvertible {
    let status: UInt16
    let body, outcome: String
    let remove: Bool
    let handleStoredAtMs: Int64?
    var testDescription: String { "\(status) \(body)" }
  }

  struct Pauses: Decodable {
    struct Case: Decodable, CustomTestStringConvertible {
      let value: String
      /// `nil` for a value to be ignored.
      let seconds: Seconds?
      var testDescription: String { "'\(value)'" }
    }
    enum Seconds: Decodable, Equatable {
      case exactly(Int32)
      case cap
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self = (try? container.decode(Int32.self)).map { .exactly($0) } ?? .cap
      }
    }
    let now: Int64
    let cases: [Case]
  }

  struct Archive: Decodable, CustomTestStringConvertible {
    struct Expectation: Decodable {
      let uid, sha1ThumbprintHex: String
      let development, production: Bool
    }
    let name, password, wrongPassword, p12B64: String
    let expect: Expectation
    var testDescription: String { name }
  }

  let apnsTable: [Row]
  let replies: [Answer]
  let retryAfter: Pauses
  let privateKeyPEM, publicKeyPEM, rsaKeyPEM, archiveAuthorityPEM: String
  let archives: [Archive]

  static let all: APNsFixture = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/apns.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return try decoder.decode(APNsFixture.self, from: Data(contentsOf: file))
    } catch {
      fatalError("the fixture \(file.path) does not read: \(error)")
    }
  }()

  /// A token credential that is right in every property, with these changes.
  static func tokenCredential(_ changes: [String: String?] = [:]) -> PushCredential {
    var properties = [
      "Token": all.privateKeyPEM, "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
      "AppName": "com.example.app", "Endpoint": "https://api.push.apple.com:443/3/device",
    ]
    for (name, value) in changes { properties[name] = value }
    return PushCredential(
      platform: .apns, properties: properties, modifiedAt: Date(timeIntervalSince1970: 0))
  }

  /// A certificate credential from one of the vectors' archives, with these changes.
  static func certificateCredential(
    _ archive: Archive, _ changes: [String: String?] = [:]
  ) -> PushCredential {
    var properties = [
      "ApnsCertificate": archive.p12B64, "CertificateKey": archive.password,
      "Endpoint": "gateway.sandbox.push.apple.com",
    ]
    for (name, value) in changes { properties[name] = value }
    return PushCredential(
      platform: .apns, properties: properties, modifiedAt: Date(timeIntervalSince1970: 0))
  }
}
