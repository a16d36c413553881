//! A bounded pool of threads for work that waits, such as fsync, files and rendering: nothing
//! that blocks runs on a loop's thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::{fmt, io};

use crate::Waker;

/// A pool of threads with a bounded queue. Dropping it finishes the tasks that were accepted, and
/// then ends the threads.
pub struct TaskPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    max_queued: usize,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent between any two calls, so a poisoned lock is safe to use.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(work) = queue.work.pop_front() {
                drop(queue);
                work();
                queue = self.lock();
            } else if queue.is_closed {
                return;
            } else {
                queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// A refusal: as many tasks wait as the pool's queue holds. A protocol answers that it is busy, or
/// leaves the request in its input and tries again once one of its tasks has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{max_queued} tasks wait for a thread already")]
pub struct PoolFull {
    /// The limit of the pool's queue.
    pub max_queued: usize,
}

/// A task that has panicked. The panic hook has reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task has panicked")]
pub struct TaskPanicked;

impl TaskPool {
    /// A pool of `threads` threads, at least 1, with room for `max_queued` tasks that wait for
    /// one. `name` is the threads' name, followed by their number.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn new(name: &str, threads: usize, max_queued: usize) -> io::Result<Self> {
        let shared = Shared { queue: Mutex::default(), arrived: Condvar::new(), max_queued };
        let mut pool = Self { shared: Arc::new(shared), threads: Vec::new() };
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(format!("{name}-{index}"));
            pool.threads.push(builder.spawn(move || shared.run())?);
        }
        Ok(pool)
    }

    /// Runs `work` on a thread of the pool, and then calls `waker`: a connection's is resumed with
    /// [`Wake::Posted`](crate::Wake::Posted) and finds the outcome in the returned [`Task`].
    ///
    /// # Errors
    /// When the queue is full; `work` is dropped.
    pub fn submit<T: Send + 'static>(
        &self,
        waker: Waker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Task<T>, PoolFull> {
        let outcome = Arc::new(Mutex::new(None));
        let task = Task(Arc::clone(&outcome));
        let work = Box::new(move || {
            // What the closure captured is dropped with it, so no broken state is seen again.
            let result = catch_unwind(AssertUnwindSafe(work)).map_err(|_| TaskPanicked);
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            waker.wake();
        });
        {
            let mut queue = self.shared.lock();
            if queue.work.len() >= self.shared.max_queued {
                return Err(PoolFull { max_queued: self.shared.max_queued });
            }
            queue.work.push_back(work);
        }
        self.shared.arrived.notify_one();
        Ok(task)
    }
}

impl TaskPool {
    /// Ends the pool at once: tasks that wait for a thread are dropped, and those that run end by
    /// themselves.
    pub fn abandon(mut self) {
        let waiting = std::mem::take(&mut self.shared.lock().work);
        self.threads.clear();
        drop(waiting);
    }
}

impl Drop for TaskPool {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // A task's panic is caught; the pool's own code has none.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TaskPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

/// A submitted task. Dropping it drops the outcome; the work is done all the same.
#[derive(Debug)]
pub struct Task<T>(Arc<Mutex<Option<Result<T, TaskPanicked>>>>);

impl<T> Task<T> {
    /// Removes and returns the outcome; `None` while the work isn't done, and after the first
    /// time.
    pub fn take(&mut self) -> Option<Result<T, TaskPanicked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::{PoolFull, TaskPanicked, TaskPool};
    use crate::Waker;
    use std::sync::mpsc::channel;

    #[test]
    fn a_full_queue_refuses_and_every_accepted_task_is_run() {
        let pool = TaskPool::new("test", 1, 2).expect("threads");
        let (started, has_started) = channel();
        let (release, released) = channel::<()>();
        let (done, is_done) = channel();
        let waker = Waker::new(move || done.send(()).expect("the test waits"));
        let mut first = pool.submit(waker.clone(), move || {
            started.send(()).expect("the test waits");
            released.recv().expect("released");
            1
        });
        has_started.recv().expect("the first runs");
        let mut second = pool.submit(waker.clone(), || 2).expect("room for two");
        let mut third = pool.submit(waker.clone(), || -> i32 { panic!("on purpose") });
        let refused = pool.submit(waker, || 4).expect_err("the queue is full");
        assert_eq!(refused, PoolFull { max_queued: 2 });
        assert_eq!(second.take(), None, "not run yet");
        release.send(()).expect("the first waits");
        is_done.iter().take(3).for_each(drop);
        drop(pool);
        assert_eq!(first.as_mut().expect("accepted").take(), Some(Ok(1)));
        assert_eq!((second.take(), second.take()), (Some(Ok(2)), None));
        assert_eq!(third.as_mut().expect("accepted").take(), Some(Err(TaskPanicked)));
    }
}
