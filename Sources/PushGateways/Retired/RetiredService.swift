import HTTPClient
import HubCore
import NotificationHubs

/// What is answered for services that have ended, without asking anybody (spec
/// `pns/mpns-and-gcm-legacy.md` section 1).
enum RetiredService {
  static let rule = PushReplyRule("local", "retired", .never, .keep, .pnsInterfaceError)
  static let reason = "retired service"
  static let refusal = PushRefusal(.pnsInterfaceError, reason)
}
