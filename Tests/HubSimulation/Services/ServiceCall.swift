package import Foundation

/// One request that a simulated service got, and what it did with it.
package struct ServiceCall: Sendable {
  /// In true time.
  package let at: Date
  package let service: SimulatedService
  /// The number of the node that sent it.
  package let node: Int
  /// Whose credential it showed: the id of an APNs key, the address of a service account, a Package
  /// SID, a VAPID key. Empty when it showed none that could be read.
  package internal(set) var credential = ""
  /// The device's handle; empty at a token service.
  package internal(set) var handle = ""
  /// The `apns-id`. Other services have no id of the sender's, and it is empty.
  package internal(set) var id = ""
  /// The body that the gateway was given; empty where it is encrypted.
  package internal(set) var body: [UInt8] = []
  /// The status that was answered, heard or not; 0 for none.
  package internal(set) var status: UInt16 = 0
  /// The service's word for it, or what befell the request; empty for a success.
  package internal(set) var reason = ""
  /// Whether the device gets the push, or the sender a token.
  package internal(set) var isTaken = false
  /// Whether the answer reaches the sender, as far as the service can tell.
  package internal(set) var isAnswered = true
  /// Until the answer, in seconds.
  package internal(set) var delay = 0.0
  /// The `Retry-After` of the answer, in seconds.
  package internal(set) var retryAfter: Int?
  /// Why its credential was not taken; `nil` when it was, or nobody looked.
  package internal(set) var refusal: Refusal?
  /// Whether the answer says that the handle is dead.
  package internal(set) var isDead = false

  package enum Refusal: Sendable {
    /// It is not one that the service knows, or is for something else.
    case wrong
    /// It is right, and its token has ended, is from the future, or changes too often.
    case untimely
    /// It is right, and a fault of the service has it refused.
    case byFault
  }
}

/// A request as a simulated service reads it.
struct ServiceRequest: Sendable {
  let now: Date
  let host: String
  /// With its query.
  let path: String
  /// Names in lower case.
  let headers: [(name: String, value: String)]
  let body: [UInt8]

  subscript(name: String) -> String? { headers.first { $0.name == name }?.value }

  /// The credentials after the scheme in `authorization`.
  func authorization(_ scheme: String) -> String? {
    guard let value = self["authorization"], value.lowercased().hasPrefix(scheme + " ") else {
      return nil
    }
    return String(value.dropFirst(scheme.utf8.count + 1))
  }
}

/// An answer of a simulated service.
struct ServiceReply: Sendable {
  var status: UInt16
  /// Names in lower case.
  var headers: [(name: String, value: String)] = []
  var body: [UInt8] = []

  init(_ status: UInt16, _ body: String = "", headers: [(name: String, value: String)] = []) {
    self.status = status
    self.headers = headers
    self.body = Array(body.utf8)
  }

  /// Adds `retry-after`, where a time is given.
  func retry(after seconds: Int?) -> ServiceReply {
    var reply = self
    if let seconds { reply.headers.append(("retry-after", String(seconds))) }
    return reply
  }
}

/// The fate of a request, as its sender sees it.
struct ServiceArrival: Sendable {
  enum Outcome: Sendable {
    case reply(ServiceReply)
    /// Not processed, and the service says so.
    case refused
    /// The stream ends without a word about the push.
    case reset
    /// The connection ends.
    case lost
  }

  let outcome: Outcome
  /// In seconds. The sender gives up first when it has less patience.
  let delay: Double
}
