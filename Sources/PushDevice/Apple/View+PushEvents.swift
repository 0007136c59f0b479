#if canImport(SwiftUI)
  public import SwiftUI

  extension View {
    /// Calls an action with each event while the view is shown. The first view to listen also gets
    /// the events that came before, such as the tap that launched the app.
    public func onPushEvent(
      of events: PushEvents, perform action: @escaping @MainActor (PushEvent) -> Void
    ) -> some View {
      task { for await event in events.events { action(event) } }
    }

    /// Calls an action with the state of the registration, and each change of it, while the view is
    /// shown.
    public func onPushState(
      of push: PushInstallation,
      perform action: @escaping @MainActor (PushInstallation.State) -> Void
    ) -> some View {
      task { for await state in push.states { action(state) } }
    }
  }
#endif
