import PushDevice
import PushDeviceSecure
import UserNotifications

/// Shows the text of a secure push in place of its general one, and the image of any push. The
/// system gives it some thirty seconds, the work takes twenty-five.
final class NotificationService: PushServiceExtension {
  override var work: ServiceExtensionWork {
    let storage = SharedStorage.storage
    let backend = try? DemoSettings.ofBundle().backend
    return ServiceExtensionWork(
      opener: backend.map { BackendAccount(backend: $0, storage: storage).messages },
      storage: storage)
  }
}
