import Foundation
import HTTPServer

/// An HTTPS listener with the keeper of its certificate.
final class SecureListener: Sendable {
  let listener: HTTPListener
  private let keeping: Task<Void, Never>

  init(
    _ listener: HTTPListener, keeper: CertificateKeeper, log: @escaping @Sendable (String) -> Void
  ) {
    self.listener = listener
    keeping = Task { [listener] in
      var keeper = keeper
      // Two looks at a file cost microseconds; anyone who renews a certificate wants to see it served.
      while (try? await Task.sleep(for: .seconds(1))) != nil {
        guard let next = keeper.look(at: Date()) else { continue }
        do {
          try listener.replaceIdentity(next)
        } catch {
          log("HTTPS keeps the certificate it has: \(error)")
        }
      }
    }
  }

  func stop(within limit: Duration) async {
    keeping.cancel()
    await listener.stop(within: limit)
  }
}
