import HTTPClient
import HubCore
import NotificationHubs

/// The pushes of a round that go to one host.
struct HostGroup: Sendable {
  let host: String
  let isPublicOnly: Bool
  /// Into the batch, in step with ``calls`` and ``handles``.
  var indices: [Int] = []
  var calls: [HTTPCall] = []
  var handles: [String] = []
}

/// A batch on its way: what can be sent, how it is written, and what has been answered. What pushes
/// have in common is worked out once for each body.
struct HTTPPushOutbox<Service: HTTPPushService>: Sendable {
  private enum Prepared: Sendable {
    case message(Service.Message)
    case refusal(PushResult)
  }

  private let batch: PushBatch
  private let service: Service
  private let messages: [Prepared]
  /// One per request; a request that is not answered yet counts as not reached.
  private(set) var results: [PushResult]
  /// The requests that may be sent, as indices.
  private(set) var sendable: [Int] = []

  init(_ batch: PushBatch, service: Service, now: Int64) {
    self.batch = batch
    self.service = service
    messages = batch.bodies.map { body in
      do throws(PushRefusal) {
        return .message(try service.message(body, now: now))
      } catch {
        return .refusal(error.result)
      }
    }
    results = Array(
      repeating: PushVerdict(.unreachable).result, count: batch.requests.count)
    for (index, request) in batch.requests.enumerated() {
      guard messages.indices.contains(Int(request.body)) else {
        results[index] = PushRefusal.badFormat("the push has no body").result
        continue
      }
      if case .refusal(let result) = messages[Int(request.body)] {
        results[index] = result
      } else {
        sendable.append(index)
      }
    }
  }

  /// Writes pushes, by the host they go to; one that cannot be written has its result now.
  mutating func calls(_ queue: [Int], token: String?, now: Int64) -> [HostGroup] {
    var groups: [HostGroup] = []
    var places: [String: Int] = [:]
    for index in queue {
      let request = batch.requests[index]
      guard case .message(let message) = messages[Int(request.body)] else { continue }
      let handle = String(decoding: batch.handles[request.handle], as: UTF8.self)
      do throws(PushRefusal) {
        let written = try service.call(
          message, to: handle, id: request.id, token: token, now: now)
        let place = places[written.host] ?? groups.count
        if place == groups.count {
          places[written.host] = place
          groups.append(HostGroup(host: written.host, isPublicOnly: written.isPublicOnly))
        }
        groups[place].indices.append(index)
        groups[place].calls.append(written.call)
        groups[place].handles.append(handle)
      } catch {
        results[index] = error.result
      }
    }
    return groups
  }

  mutating func record(_ result: PushResult, for index: Int) { results[index] = result }

  /// Notes what the service said.
  mutating func record(_ verdict: PushVerdict, for index: Int) { results[index] = verdict.result }
}
