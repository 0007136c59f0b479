import Foundation
import Wire

/// The access tokens that token services have handed out. They end by the true time.
struct AccessGrants: Sendable {
  struct Grant: Sendable {
    let service: SimulatedService
    let client: String
    let expiresAt: Date
    var isRevoked = false
  }

  private var grants: [String: Grant] = [:]
  private var count = 0

  /// - Parameter lifetime: In seconds.
  /// - Returns: The token service's answer.
  mutating func grant(
    to client: String, by service: SimulatedService, lifetime: Int, at now: Date
  ) -> ServiceReply {
    count += 1
    let text = "\(service.rawValue)-\(count)"
    grants[text] = Grant(
      service: service, client: client, expiresAt: now + TimeInterval(lifetime))
    return ServiceReply(
      200, #"{"access_token":"\#(text)","expires_in":\#(lifetime),"token_type":"Bearer"}"#)
  }

  /// Whose token it is; `nil` for one that is not of this service, or over.
  func client(of text: String?, by service: SimulatedService, at now: Date) -> String? {
    guard let grant = text.flatMap({ grants[$0] }), grant.service == service, grant.expiresAt > now,
      !grant.isRevoked
    else { return nil }
    return grant.client
  }

  /// Why ``client(of:by:at:)`` knows nobody.
  func refusal(of text: String?) -> ServiceCall.Refusal {
    guard let grant = text.flatMap({ grants[$0] }) else { return .wrong }
    return grant.isRevoked ? .byFault : .untimely
  }

  mutating func revokeAll() { for text in grants.keys { grants[text]?.isRevoked = true } }
}

extension ServiceReply {
  /// A token service's refusal (RFC 6749, section 5.2).
  static func tokenRefusal(
    _ error: String, status: UInt16 = 400, _ call: inout ServiceCall
  ) -> ServiceReply {
    call.reason = error
    return ServiceReply(status, #"{"error":"\#(error)"}"#)
  }
}

extension ServiceRequest {
  /// The fields of a form.
  var form: [String: String] {
    var fields: [String: String] = [:]
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let name = PercentEncoding.decode(parts[0], plusIsBlank: true) else {
        continue
      }
      fields[name] = PercentEncoding.decode(parts[1], plusIsBlank: true)
    }
    return fields
  }
}
