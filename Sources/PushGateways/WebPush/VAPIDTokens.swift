import Cryptography
import Foundation
import HubCore
import Synchronization
import Wire

/// What an application server's key shows to each push service (RFC 8292): one token per origin,
/// renewed after half its life.
final class VAPIDTokens: Sendable {
  private struct Entry {
    let authorization: String
    /// In seconds since 1970.
    let renewAt: Int64
    let issuedAt: Int64
  }

  /// Half of the longest that the standard allows.
  private static let lifetime: Int64 = 12 * 3600
  /// More origins than there are push services; beyond, all are made again.
  private static let capacity = 1024

  private let credential: WebPushCredential
  private let clock: HubClock
  private let entries = Mutex<[Origin: Entry]>([:])

  init(_ credential: WebPushCredential, clock: HubClock) {
    self.credential = credential
    self.clock = clock
  }

  /// The value of the header `Authorization` for requests to an origin.
  func authorization(for origin: Origin) throws(CryptographyError) -> String {
    let now = Int64(clock.now().timeIntervalSince1970)
    // Signing takes microseconds and may happen under the lock.
    return try entries.withLock { entries throws(CryptographyError) in
      if let entry = entries[origin], (entry.issuedAt..<entry.renewAt).contains(now) {
        return entry.authorization
      }
      // Origin and subject have been checked: nothing to escape.
      let claims =
        #"{"aud":"\#(origin.text)","exp":\#(now + Self.lifetime),"sub":"\#(credential.subject)"}"#
      let token = try CompactJWS.sign(
        header: Array(#"{"typ":"JWT","alg":"ES256"}"#.utf8), claims: Array(claims.utf8),
        with: credential.key)
      let authorization = "vapid t=\(token), k=\(Base64URL.encode(credential.point))"
      if entries.count >= Self.capacity { entries = [:] }
      entries[origin] = Entry(
        authorization: authorization, renewAt: now + Self.lifetime / 2, issuedAt: now)
      return authorization
    }
  }
}
