import Foundation
import NotificationHubs
import Synchronization

/// The network of a virtual phone.
final class PhoneNetwork: HTTPTransport {
  private let transport: any HTTPTransport
  private let offline: Mutex<Bool>

  init(_ transport: any HTTPTransport, isOffline: Bool) {
    self.transport = transport
    offline = Mutex(isOffline)
  }

  var isOffline: Bool { offline.withLock { $0 } }
  func comeBack() { offline.withLock { $0 = false } }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    if isOffline { throw URLError(.notConnectedToInternet) }
    return try await transport.send(request)
  }
}
